"""A SentEval folder of made-up sentences, small enough for a test."""

from pathlib import Path

from contrastbench.domains.sentence.data import STS_YEARS
from contrastbench.domains.sentence.transfer import TWO_FILES

ODD = ["", "nul \0 inside", "word " * 20_000]  # that is 100 kB


def sentence(i: int) -> str:
    return f"ba{'cedifogu'[i % 8]} kale number {i * 7 % 31} ban"


def write(root: Path, name: str, lines: list[str]) -> None:
    path = root / "senteval" / "downstream" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def make(root: Path, odd: list[str]) -> None:
    """STS, with odd sentences among the first subset's, and the transfer tasks."""
    texts = odd + [sentence(i) for i in range(12)]
    pairs = [(text, sentence(i + i % 3), str(i % 6)) for i, text in enumerate(texts)]
    for year, subsets in STS_YEARS.items():
        for subset in subsets:
            write(
                root,
                f"STS/{year}-en-test/STS.input.{subset}.txt",
                [f"{a}\t{b}" for a, b, _ in pairs],
            )
            write(root, f"STS/{year}-en-test/STS.gs.{subset}.txt", [gold for *_, gold in pairs])
    for part in ("dev", "test"):
        write(
            root,
            f"STS/STSBenchmark/sts-{part}.csv",
            [f"g\tf\ty\t1\t{gold}\t{a}\t{b}" for a, b, gold in pairs],
        )
    write(
        root,
        "SICK/SICK_test_annotated.txt",
        ["head"] + [f"1\t{a}\t{b}\t{gold}\tN\tM" for a, b, gold in pairs],
    )
    for i, name in enumerate(name for names in TWO_FILES.values() for name in names):
        write(root, name, [sentence(i % 2 + 2 * k) for k in range(20)])
    for part in ("train", "dev", "test"):
        write(root, f"SST/binary/sentiment-{part}", [f"{sentence(k)}\t{k % 2}" for k in range(30)])
    for part in ("train_5500", "TREC_10"):
        write(root, f"TREC/{part}.label", [f"{'DHNL'[k % 4]}:x {sentence(k)}" for k in range(45)])
    for part in ("train", "test"):
        rows = [f"{k % 2}\t1\t2\t{sentence(k)}\t{sentence(k + k % 2)}" for k in range(30)]
        write(root, f"MRPC/msr_paraphrase_{part}.txt", ["head", *rows])
