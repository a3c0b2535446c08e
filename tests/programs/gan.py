"""A generator learns a normal distribution against a discriminator."""

import torch
from torch import nn, optim
from torch.distributions import Normal

torch.manual_seed(4)
real = Normal(torch.tensor(2.0), torch.tensor(0.5))
netG = nn.Sequential(nn.Linear(4, 32), nn.LeakyReLU(0.2, inplace=True), nn.Linear(32, 1))
netD = nn.Sequential(
    nn.Linear(1, 32),
    nn.LeakyReLU(0.2, inplace=True),
    nn.Linear(32, 32),
    nn.Tanh(),
    nn.Linear(32, 1),
)


def weights_init(m):
    if m.__class__.__name__.find("Linear") != -1:
        nn.init.xavier_normal_(m.weight)
        nn.init.constant_(m.bias, 0.0)


netG.apply(weights_init)
netD.apply(weights_init)
criterion = nn.BCEWithLogitsLoss()
optG = optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))
optD = optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
for step in range(800):
    x = real.sample((128, 1))
    noise = torch.randn(128, 4)
    fake = netG(noise)
    optD.zero_grad()
    errD = criterion(netD(x), torch.ones(128, 1))
    errD = errD + criterion(netD(fake.detach()), torch.zeros(128, 1))
    errD.backward()
    optD.step()
    optG.zero_grad()
    errG = criterion(netD(fake), torch.full((128, 1), 1.0))
    errG.backward()
    optG.step()
with torch.no_grad():
    made = netG(torch.randn(2000, 4)).view(-1)
print(f"mean {made.mean().item():.2f}, deviation {made.std().item():.2f}")
assert abs(made.mean().item() - 2.0) < 0.7
assert 0.1 < made.std().item() < 1.5
