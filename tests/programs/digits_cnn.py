"""Classify drawn digits with a convolutional network: data, device, checkpoint and schedule."""

import argparse
import os
import tempfile

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, random_split

GLYPHS = ["0110100110010110", "0010011000100111", "1110001001001111", "1110011000011110"]


class Digits(Dataset):
    def __init__(self, count):
        glyphs = torch.tensor([[float(c) for c in g] for g in GLYPHS]).view(-1, 1, 4, 4)
        self.targets = torch.randint(0, len(GLYPHS), (count,))
        images = F.interpolate(glyphs[self.targets], scale_factor=3, mode="nearest")
        self.images = images + 0.5 * torch.randn(images.size())

    def __len__(self):
        return self.images.size(0)

    def __getitem__(self, index):
        return self.images[index], self.targets[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, 1)
        self.conv2 = nn.Conv2d(8, 16, 3, 1)
        self.dropout = nn.Dropout(0.25)
        self.fc1 = nn.Linear(16 * 4 * 4, 32)
        self.fc2 = nn.Linear(32, len(GLYPHS))

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = self.dropout(torch.flatten(x, 1))
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def train(model, device, loader, optimizer):
    model.train()
    for data, target in loader:
        data, target = data.to(device), target.to(device)
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()


def test(model, device, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data.to(device, non_blocking=True))
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.to(device).view_as(pred)).sum().item()
    return correct / len(loader.dataset)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    train_set, test_set = random_split(Digits(1200), [1000, 200])
    train_loader = DataLoader(train_set, batch_size=50, shuffle=True, num_workers=0)
    test_loader = DataLoader(test_set, batch_size=100)
    model = Net().to(device)
    optimizer = optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for _ in range(args.epochs):
        train(model, device, train_loader, optimizer)
        scheduler.step()
    accuracy = test(model, device, test_loader)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "net.pt")
        torch.save(model.state_dict(), path)
        again = Net().to(device)
        again.load_state_dict(torch.load(path, map_location=device))
    assert test(again, device, test_loader) == accuracy
    print(f"accuracy {accuracy:.3f}")
    assert accuracy > 0.95


if __name__ == "__main__":
    main()
