"""Tests of datasets, samplers, collation and the loader."""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict, namedtuple

import numpy as np
import pytest

import minigrad as mg
from minigrad.data import (
    BatchSampler,
    ChainDataset,
    ConcatDataset,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
    default_convert,
    get_worker_info,
    random_split,
)

pytestmark = [
    pytest.mark.usefixtures("restore_random"),
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded"),  # where it forks
]

Pair = namedtuple("Pair", "left right")


class Squares(Dataset):
    """Counts from 0, with the squares; at 13 there is nothing."""

    def __init__(self, size=10):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        if index == 13:
            raise ValueError("no thirteenth")
        return float(index), index**2


class Noise(Dataset):
    """Random numbers: a sample draws its own."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return mg.rand(3) + index


class Stream(IterableDataset):
    """Counts up; with workers each takes every so manieth."""

    def __init__(self, end, step=None):
        self.end = end

    def __iter__(self):
        info = get_worker_info()
        return iter(range(self.end) if info is None else range(info.id, self.end, info.num_workers))


class Slow(Dataset):
    """Samples that wait for one another."""

    def __init__(self):
        self.gate = threading.Event()

    def __len__(self):
        return 4

    def __getitem__(self, index):
        if index == 0:
            self.gate.wait(60)
        return index


def lists(loader):
    """The batches of an epoch as lists."""
    plain = {list: lambda x: [plain_of(y) for y in x], tuple: lambda x: tuple(map(plain_of, x))}

    def plain_of(x):
        return x.tolist() if isinstance(x, mg.Tensor) else plain.get(type(x), lambda y: y)(x)

    return [plain_of(batch) for batch in loader]


def threads():
    return [t for t in threading.enumerate() if t.name.startswith("minigrad-data")]


WORKERS = [{}, {"num_workers": 1}, {"num_workers": 3}]
PROCESSES = [*WORKERS, {"num_workers": 2, "multiprocessing_context": "fork"}]


# ---- datasets and samplers -----------------------------------------------------------------------


def test_datasets():
    x, y = mg.arange(6.0).reshape(3, 2), mg.tensor([5, 6, 7])
    rows = TensorDataset(x, y)
    assert len(rows) == 3
    assert [v.tolist() for v in rows[-1]] == [[4, 5], 7]
    joined = rows + rows + Squares(2)
    assert len(joined) == 8
    assert joined[7] == joined[-1] == (1.0, 1)
    assert [v.tolist() for v in joined[3]] == [[0, 1], 5]
    assert isinstance(joined, ConcatDataset)
    part = Subset(rows, [2, 0])
    assert (len(part), part[1][1].item()) == (2, 5)
    assert StackDataset(Squares(3), "abc")[2] == ((2.0, 4), "c")
    assert StackDataset(a=Squares(3), b="abc").__getitems__([1, 0]) == [
        {"a": (1.0, 1), "b": "b"},
        {"a": (0.0, 0), "b": "a"},
    ]
    assert list(Stream(2) + Stream(3)) == [0, 1, 0, 1, 2]


def test_random_split():
    parts = random_split(range(10), [7, 3], generator=mg.Generator().manual_seed(1))
    again = random_split(range(10), [0.7, 0.3], generator=mg.Generator().manual_seed(1))
    assert [list(p) for p in parts] == [list(p) for p in again]
    assert sorted([*parts[0], *parts[1]]) == list(range(10))
    assert [len(p) for p in random_split(range(10), [1 / 3] * 3)] == [4, 3, 3]
    with pytest.raises(ValueError, match=r"^\[random_split\] lengths \[1, 2\] add up to 3"):
        random_split(range(10), [1, 2])
    with pytest.warns(UserWarning, match="subset 1 is empty"):
        random_split(range(10), [10, 0])


@pytest.mark.parametrize("replacement", [True, False])
def test_an_endless_sampler_draws_while_it_is_taken(replacement):
    sampler = RandomSampler(range(5), replacement, num_samples=10**12)
    assert len(sampler) == 10**12
    mg.manual_seed(0)
    drawn = list(itertools.islice(sampler, 10_000))
    assert set(drawn) == set(range(5))
    assert (sorted(drawn[:5]) == sorted(drawn[5:10]) == [0, 1, 2, 3, 4]) is not replacement
    data = TensorDataset(10 * mg.arange(5))
    for dataset in (data, list(data)):
        mg.manual_seed(0)
        batches = iter(DataLoader(dataset, batch_size=3, sampler=sampler))
        assert [x for _ in range(4) for x in next(batches)[0].tolist()] == [
            10 * i for i in drawn[:12]
        ]
    with pytest.raises(ValueError, match=r"^\[RandomSampler\] 2000000 samples of a dataset that"):
        iter(RandomSampler([], num_samples=2_000_000))


def test_samplers():
    assert list(SequentialSampler("abc")) == [0, 1, 2]
    mg.manual_seed(0)
    first = list(RandomSampler(range(20)))
    assert sorted(first) == list(range(20)) != first
    mg.manual_seed(0)
    assert list(RandomSampler(range(20))) == first
    drawn = list(RandomSampler(range(3), replacement=True, num_samples=100))
    assert set(drawn) == {0, 1, 2}
    twice = list(RandomSampler(range(3), num_samples=7))
    assert sorted(twice[:3]) == sorted(twice[3:6]) == [0, 1, 2]
    assert sorted(SubsetRandomSampler([7, 3, 5])) == [3, 5, 7]
    assert set(WeightedRandomSampler([0.0, 1.0, 3.0], 50)) == {1, 2}
    assert sorted(WeightedRandomSampler([1.0, 1.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    assert list(BatchSampler(range(5), 2, False)) == [[0, 1], [2, 3], [4]]
    assert list(BatchSampler(range(5), 2, True)) == [[0, 1], [2, 3]]
    assert len(BatchSampler(range(5), 2, False)) == 3
    parts = [DistributedSampler(range(5), 2, rank) for rank in (0, 1)]
    assert set(parts[0]) | set(parts[1]) == set(range(5))
    before = list(parts[0])
    assert list(parts[0]) == before
    parts[0].set_epoch(1)
    assert list(parts[0]) != before or len(before) < 3
    assert [len(p) for p in parts] == [3, 3]


# ---- collation -----------------------------------------------------------------------------------


def test_collation():
    x = mg.tensor([1.0, 2.0])
    found = default_collate([{"x": x, "n": 1}, {"x": x * 2, "n": 2}])
    assert (found["x"].tolist(), found["n"].tolist()) == ([[1, 2], [2, 4]], [1, 2])
    assert found["n"].dtype is mg.int64
    floats = default_collate([0.5, 1.5])
    assert (floats.dtype, floats.tolist()) == (mg.float64, [0.5, 1.5])
    assert default_collate([True, False]).dtype is mg.bool
    made = default_collate([Pair(1, ["a", 2.0]), Pair(3, ["b", 4.0])])
    assert isinstance(made, Pair)
    assert made.left.tolist() == [1, 3]
    assert made.right[0] == ["a", "b"]
    assert made.right[1].tolist() == [2, 4]
    image = np.zeros((2, 2), np.uint8)
    assert default_collate([image, image + 1]).dtype is mg.uint8
    assert default_collate([np.float32(1), np.float32(2)]).dtype is mg.float32
    assert default_collate([b"a", b"b"]) == [b"a", b"b"]
    assert isinstance(default_collate([OrderedDict(a=1)]), OrderedDict)
    with pytest.raises(RuntimeError, match=r"^\[default_collate\] samples have \[1, 2\] elements"):
        default_collate([[1], [1, 2]])
    with pytest.raises(TypeError, match="not object: give a collate_fn"):
        default_collate([object()])
    assert default_convert({"a": (np.ones(1), "s", 3)}) == {"a": [mg.ones(1).double(), "s", 3]}


# ---- the loader ----------------------------------------------------------------------------------

TABLE = TensorDataset(mg.arange(10.0).reshape(5, 2), mg.arange(5))


@pytest.mark.parametrize("workers", PROCESSES, ids=str)
@pytest.mark.parametrize(
    "options",
    [{}, {"batch_size": 3}, {"batch_size": 3, "drop_last": True}, {"batch_size": None}],
    ids=str,
)
def test_batches_in_order(options, workers):
    loader = DataLoader(Squares(7), **options, **workers)
    size = options.get("batch_size", 1)
    found = lists(loader)
    assert len(found) == len(loader)
    if size is None:
        assert found == [[float(i), i**2] for i in range(7)]
        return
    wanted = [range(7)[i : i + size] for i in range(0, 7, size)]
    wanted = [r for r in wanted if len(r) == size or not options.get("drop_last")]
    assert found == [[[float(i) for i in r], [i**2 for i in r]] for r in wanted]
    assert lists(loader) == found  # the next epoch


@pytest.mark.parametrize("workers", PROCESSES, ids=str)
def test_rows_of_tensors_are_the_samples_collated(workers):
    by_hand = DataLoader(TABLE, batch_size=2, collate_fn=lambda rows: default_collate(rows))
    for dataset in (TABLE, Subset(TABLE, [4, 0, 2]), Subset(Subset(TABLE, [4, 0, 2]), [2, 0])):
        for sampler in (None, [1, 0]):
            options = {"batch_size": 2, "sampler": sampler, **workers}
            found = lists(DataLoader(dataset, **options))
            by_hand = DataLoader(dataset, batch_size=2, sampler=sampler, collate_fn=_collate)
            assert found == lists(by_hand)


def _collate(rows):
    return default_collate(rows)


def test_a_batch_of_rows_is_a_copy():
    x = mg.zeros(4, 2)
    for (batch,) in DataLoader(TensorDataset(x), batch_size=2):
        batch += 1
    assert x.sum().item() == 0


def test_shuffling_is_repeated_from_a_seed():
    orders = []
    for workers in WORKERS:
        for dataset in (TABLE, Squares(5)):
            mg.manual_seed(3)
            loader = DataLoader(dataset, batch_size=2, shuffle=True, **workers)
            orders.append([n for batch in lists(loader) for n in batch[-1]])
    roots = [[int(n**0.5) for n in order] for order in orders[1::2]]
    assert orders[0::2] == [orders[0]] * 3
    assert roots == [orders[0]] * 3
    assert sorted(orders[0]) == list(range(5))
    own = [
        lists(DataLoader(TABLE, 5, True, generator=mg.Generator().manual_seed(5))) for _ in range(2)
    ]
    assert own[0] == own[1]


def test_random_numbers_are_the_same_for_any_number_of_workers():
    found = []
    for workers in PROCESSES[1:]:
        mg.manual_seed(7)
        found.append(lists(DataLoader(Noise(), batch_size=2, **workers)))
    assert found[0] == found[1] == found[2]
    flat = [round(x % 1, 12) for batch in found[0] for row in batch for x in row]
    assert len(set(flat)) > 30  # no two batches draw the same


@pytest.mark.parametrize("workers", PROCESSES, ids=str)
def test_streams(workers):
    loader = DataLoader(Stream(8), batch_size=2, **workers)
    found = lists(loader)
    assert sorted(n for batch in found for n in batch) == list(range(8))
    assert lists(loader) == found
    assert len(lists(DataLoader(Stream(8), batch_size=3, drop_last=True))) == 2
    assert lists(DataLoader(Stream(3), batch_size=None, **workers)) == [0, 1, 2]
    assert lists(DataLoader(ChainDataset([Stream(1), Stream(2)]), batch_size=3)) == [[0, 0, 1]]


@pytest.mark.parametrize("workers", PROCESSES, ids=str)
def test_an_error_names_the_sample(workers):
    loader = DataLoader(Squares(20), batch_size=4, **workers)
    taken = []
    text = r"^\[DataLoader\] sample 13: no thirteenth$" if workers else "^no thirteenth$"
    with pytest.raises(ValueError, match=text):
        taken += [batch[1].tolist() for batch in loader]
    assert len(taken) in (0, 3)
    assert threads() == []


def test_an_end_of_iteration_in_a_dataset_is_an_error():
    class Ends(Squares):
        def __getitem__(self, index):
            raise StopIteration

    for workers in WORKERS:
        with pytest.raises(RuntimeError, match=r"sample 0 raised StopIteration"):
            lists(DataLoader(Ends(), **workers))


@pytest.mark.parametrize("dataset", [Squares(1000), Stream(1000)], ids=["map", "stream"])
def test_leaving_early_leaves_no_thread(dataset):
    for step, _ in enumerate(DataLoader(dataset, batch_size=2, num_workers=3)):
        assert len(threads()) == 3
        if step == 4:
            break
    batches = iter(DataLoader(dataset, num_workers=2))
    next(batches)
    del batches, _
    assert threads() == []


def test_workers_that_stay():
    loader = DataLoader(Squares(6), batch_size=2, num_workers=2, persistent_workers=True)
    first = lists(loader)
    before = threads()
    assert lists(loader) == first
    assert threads() == before
    for worker in loader._kept:
        worker.close()


def test_batches_out_of_order():
    data = Slow()
    loader = DataLoader(data, num_workers=2, batch_size=None, in_order=False)
    batches = iter(loader)
    first = [next(batches)]
    data.gate.set()
    assert first[0] != 0
    assert sorted([*first, *batches]) == [0, 1, 2, 3]


def test_a_timeout():
    data = Slow()
    batches = iter(DataLoader(data, num_workers=1, timeout=0.01))
    threading.Timer(0.5, data.gate.set).start()  # so that the worker can end
    with pytest.raises(RuntimeError, match=r"longer than the timeout of 0.01 seconds"):
        next(batches)


def test_worker_init_and_info():
    assert get_worker_info() is None
    seen = []

    def init(number):
        info = get_worker_info()
        seen.append((number, info.id, info.num_workers, info.seed))

    data = Squares(4)
    lists(DataLoader(data, num_workers=2, worker_init_fn=init))
    assert sorted(s[:3] for s in seen) == [(0, 0, 2), (1, 1, 2)]
    assert seen[0][3] != seen[1][3]


def _ends_the_process(number):
    import os

    os._exit(3)


def test_a_process_that_ends_by_itself():
    loader = DataLoader(
        Squares(4), num_workers=1, multiprocessing_context="fork", worker_init_fn=_ends_the_process
    )
    with pytest.raises(RuntimeError, match="a worker process ended by itself"):
        lists(loader)


def test_no_samples():
    for dataset in (Squares(0), TensorDataset(mg.zeros(0, 2)), Stream(0)):
        for workers in WORKERS:
            assert lists(DataLoader(dataset, batch_size=2, **workers)) == []
    assert lists(DataLoader(TensorDataset(mg.zeros(0, 2)), shuffle=True)) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"num_workers": -1}, "num_workers"),
        ({"batch_size": 0}, "batch_size"),
        ({"timeout": -1}, "timeout is -1"),
        ({"prefetch_factor": 2}, "prefetch_factor is for workers"),
        ({"persistent_workers": True}, "persistent_workers is for workers"),
        ({"multiprocessing_context": "fork"}, "multiprocessing_context is for workers"),
        (
            {"num_workers": 1, "multiprocessing_context": "spam"},
            "multiprocessing_context is 'sp",
        ),
        ({"shuffle": True, "sampler": [0]}, "sampler gives the order"),
        ({"batch_sampler": [[0]], "batch_size": 2}, "batch_sampler gives the batches"),
        ({"batch_sampler": [[0]], "drop_last": True}, "batch_sampler gives the batches"),
        ({"batch_size": None, "drop_last": True}, "drop_last means nothing"),
    ],
    ids=str,
)
def test_arguments_that_exclude_each_other(options, text):
    with pytest.raises(ValueError, match=rf"^\[DataLoader\] .*{text}"):
        DataLoader(Squares(), **options)


def test_streams_have_their_own_order():
    for options in ({"shuffle": True}, {"sampler": [0]}, {"batch_sampler": [[0]]}):
        with pytest.raises(ValueError, match=r"^\[DataLoader\] an IterableDataset has its"):
            DataLoader(Stream(3), **options)
    with pytest.raises(TypeError):
        len(DataLoader(Stream(3)))


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: TensorDataset(mg.ones(2), mg.ones(3)), ValueError, r"\[TensorDataset\] shapes"),
        (lambda: TensorDataset(np.ones(2)), TypeError, r"\[TensorDataset\] expected tensors"),
        (lambda: ConcatDataset([]), ValueError, r"\[ConcatDataset\] needs at least one"),
        (lambda: ConcatDataset([Stream(1)]), TypeError, r"\[ConcatDataset\] an IterableDataset"),
        (lambda: ChainDataset([Squares()]), TypeError, r"\[ChainDataset\] expected IterableData"),
        (lambda: StackDataset([1], [1, 2]), ValueError, r"\[StackDataset\] lengths \[1, 2\] diff"),
        (lambda: RandomSampler([1], num_samples=-1), ValueError, r"\[RandomSampler\] num_samples"),
        (lambda: BatchSampler([1], 0, False), ValueError, r"\[BatchSampler\] batch_size"),
        (lambda: WeightedRandomSampler([[1.0]], 1), ValueError, r"weights have shape \(1, 1\)"),
        (lambda: DistributedSampler([1], 2, 2), ValueError, r"\[DistributedSampler\] rank is 2"),
    ],
)
def test_refusals(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_the_names_of_pytorch():
    import minigrad.utils.data as data

    assert data.DataLoader is mg.data.DataLoader is mg.utils.data.DataLoader


# ---- beside PyTorch ------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 5, 6])
@pytest.mark.parametrize("drop_last", [False, True])
def test_lengths_as_pytorchs(size, drop_last):
    theirs = pytest.importorskip("torch.utils.data")
    for batch_size in (1, 2, 3):
        ours = DataLoader(Squares(size), batch_size=batch_size, drop_last=drop_last)
        other = theirs.DataLoader(Squares(size), batch_size=batch_size, drop_last=drop_last)
        assert len(ours) == len(other)
        assert lists(ours) == [[x.tolist() for x in batch] for batch in other]
