"""The command line as a user meets it.

One line for a mistake, exit code 2, no traceback, no record.
"""

import hashlib
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from typer.main import get_command

import contrastbench
import stub_domain
import warm
from contrastbench.benchmarks.cli import listing
from contrastbench.benchmarks.cli import main as cli
from contrastbench.benchmarks.cli.options import parse_pairs
from contrastbench.benchmarks.records.seeds import parse_seeds
from contrastbench.benchmarks.records.store import read_record
from contrastbench.benchmarks.running.devices import installed
from contrastbench.benchmarks.running.provenance import provenance
from contrastbench.domains.registry import DOMAINS, make_recipe
from contrastbench.losses import UserError
from contrastbench.losses.laws import CheckResult
from contrastbench.losses.registry import ALIASES, FAMILIES, OURS
from damaged import full_disk
from warm import python

MAIN = "from contrastbench.benchmarks.cli.main import main; main()"
KEPT = "what is finished is kept, the same command goes on with the rest"
RUN = ["run", "--domain", "graph", "--loss", "adnce"]


def test_a_run_prints_its_records_and_goes_on_where_it_stopped(bench, tmp_path: Path) -> None:
    code, out, _ = bench(*RUN, "--tiny", "--json", "--seeds", "0,2")
    records = [json.loads(line) for line in out.splitlines()]
    assert (code, [r["seed"] for r in records]) == (0, [0, 2])
    code, again, _ = bench(*RUN, "--tiny", "--seeds", "0-2")
    assert code == 0
    assert again.count("graph label-pairs adnce seed") == 3
    assert "over 3 of 3 seeds" in again
    assert len(list(tmp_path.rglob("*.json"))) == 3


TALKATIVE = """
import os
from contrastbench.losses.library.infonce import InfoNCE

print("imported")

class Talkative(InfoNCE):
    def terms(self, scores):
        print("called")
        os.system("echo from a process")
        return super().terms(scores)
"""


def test_what_a_users_loss_prints_stays_out_of_the_records(tmp_path: Path) -> None:
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    words = ["run", "--domain", "graph", "--loss", "talkative.py:Talkative", "--tiny", "--json"]
    done = warm.bench(tmp_path, *words, "--seeds", "0-1")
    assert [json.loads(line)["seed"] for line in done.stdout.splitlines()] == [0, 1], done.stderr
    assert all(text in done.stderr for text in ("imported", "called", "from a process"))


def test_a_seed_that_fails_shows_in_the_exit_code(bench) -> None:
    code, out, _ = bench(*RUN, "--tiny", "--recipe", "lr=1e30", "--seeds", "0-1")
    assert code == 1
    assert out.count("diverged, the loss is") == 2
    assert "0 of 2 seeds are ok: no mean over seeds" in out


def test_data_are_checked_without_a_training(bench, tmp_path: Path) -> None:
    rows = [f"{i % 9},{3 * i},{'ab'[i % 2]}" for i in range(60)]
    (tmp_path / "fine.csv").write_text("\n".join(["x,y,kind", *rows]))
    (tmp_path / "twice.csv").write_text("\n".join(["x,y,kind", *rows, *rows]))
    words = ["data", "check", "--target", "kind"]
    assert bench(*words, "csv:fine.csv")[0] == 0
    code, out, _ = bench(*words, "csv:twice.csv")
    assert code == 1
    assert re.search(r"wrong: \d.* % of test rows equal a training one; 100.0 % of all equal", out)
    assert bench("data", "check", "graded")[1].startswith("graded: 1,200 pairs")
    assert not list(tmp_path.glob("results/*"))


def test_tables_go_to_the_results_folder(bench, tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    code, out, _ = bench("table", "--all")
    assert code == 0
    assert sorted(out.split()) == sorted(
        str(path.relative_to(tmp_path)) for path in (tmp_path / "results").iterdir()
    )
    assert "results/adnce-table5.md" in out
    page = (tmp_path / "results" / "adnce-table5.md").read_text().split("\n\n")
    printed = bench("table", "adnce-table5")[1].split("\n\n")
    assert [part for part in page if part in printed] == printed, "and a page says more"
    assert len(page) > len(printed) > 3


def test_losses_are_listed_by_family(bench) -> None:
    _, out, _ = bench("list", "families")
    families, losses = ([], [])
    for line in out.splitlines():
        (losses if line.startswith(" ") else families).append(line.strip())
    assert families == list(FAMILIES)
    assert [line.split()[0] for line in losses] == list(OURS)
    shown = [re.findall(r"\(also (.*)\)$", line) for line in losses]
    assert {name for (names,) in filter(None, shown) for name in names.split(", ")} == {*ALIASES}


INSTANT = ["list losses", "list families", "list datasets", "list tables", "table adnce-table5"]
INSTANT += ["plan smoke", "--help"]
MISTAKEN = [  # before torch is imported
    *("run --domain graph --loss adnce --set taux=1", "check-loss adnce(temperature=-1)"),
    *("run --domain graph --loss adnce --set mu=nan", "check-loss adnce(taux=1)"),
    "run --domain graph --loss adnce --recipe epoch=1",
    "score --encoder torchvision:resnet18 --dataset digits --by knm",
]
WITHOUT_TORCH = """
import sys
sys.modules |= {"torch": None, "numpy": None}
from contrastbench.benchmarks.cli import main as cli
for words in sys.argv[1:]:
    sys.argv = ["bench", *words.split()]
    try:
        cli.run_command_line()
    except SystemExit as stop:
        print("exit code", stop.code or 0)
"""


def test_what_must_be_instant_and_mistakes_need_no_torch(tmp_path: Path) -> None:
    words = [sys.executable, "-c", WITHOUT_TORCH, *INSTANT, *MISTAKEN]
    done = subprocess.run(words, text=True, capture_output=True, cwd=tmp_path)
    codes = re.findall("^exit code ([0-9])$", done.stdout, re.MULTILINE)
    assert codes == ["0"] * len(INSTANT) + ["2"] * len(MISTAKEN), done.stderr
    assert re.findall("^bench: ", done.stderr, re.MULTILINE) == ["bench: "] * len(MISTAKEN)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (text, "give distinct numbers from 0 on")
            for text in ("0-2,3-1", "3-", "-3", "1_0", "", "0,", "٣", "+1")
        ),
        *(
            (text, "below 2\\*\\*32")
            for text in ("4294967296", "0-9999999999", "9" * 23, "1" * 5000)
        ),
        *((text, "give at most 10,000 seeds") for text in ("0-4294967295", "0-9999,10000")),
    ],
)
def test_what_are_no_seeds_is_one_line(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        parse_seeds(text)
    assert len(str(error.value)) < 200


def test_a_run_prints_the_values_that_were_learned(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    stub_domain.install(monkeypatch)
    own = str(Path(__file__).parents[2] / "losses" / "learned.py:Temperature")
    words = ["run", "--domain", "graph", "--dataset", "motifs", "--recipe", "epochs=1"]
    said = bench(*words, "--loss", own)[1].splitlines()
    assert said[0].startswith("graph motifs learned seed 0: accuracy ")
    assert re.fullmatch(r"  learned: temperature 0\.4\d+|  learned: temperature 0\.5\d+", said[1])
    assert bench(*words, "--loss", own)[1].splitlines()[1:] == said[1:], "kept"
    assert len(bench(*words, "--loss", "infonce")[1].splitlines()) == 1


def test_the_doctor_says_where_the_package_is_not_installed(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contrastbench.benchmarks.cli.doctor.installed", lambda name: None)
    assert 'is not known: pip install -e "/' in bench("doctor")[1]


@pytest.mark.skipif(not installed("contrastbench"), reason="the package is not installed")
def test_the_doctor_names_what_is_missing(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastbench.benchmarks.cli import doctor

    code, out, _ = bench("doctor")
    assert code == 0
    assert "  torch 2" in out
    assert "extra [graph]: complete" in out
    real = doctor.installed
    monkeypatch.setattr(
        doctor, "installed", lambda name: None if name == "torch-geometric" else real(name)
    )
    assert 'missing torch-geometric: pip install "contrastbench[graph]"' in bench("doctor")[1]
    monkeypatch.setattr(
        doctor, "installed", lambda name: "0.0.1" if name in ("torch", "pillow") else real(name)
    )
    out = bench("doctor")[1]
    assert "torch 0.0.1, but >=2" in out
    assert "extra [image]: missing pillow>=" in out


def test_the_doctor_knows_cards(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastbench.benchmarks.cli import doctor

    monkeypatch.setattr(doctor, "driver", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for built, said in (
        ("13.2", "no CUDA device: no driver of NVIDIA's answers (nvidia-smi); everything runs on"),
        (None, "torch is built for CPUs alone\nno CUDA device; everything runs on the CPU"),
    ):
        monkeypatch.setattr(torch.version, "cuda", built)
        assert said in bench("doctor")[1]
    monkeypatch.setattr(doctor, "driver", lambda: "580.65.06")
    assert "CPUs alone, but there is a driver: pip install torch as" in bench("doctor")[1]
    answers = {
        "is_available": True,
        "device_count": 1,
        "mem_get_info": (60 * 2**30, 80 * 2**30),
        "get_device_name": "NVIDIA H100",
        "is_bf16_supported": True,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(torch.cuda, name, lambda *_, answer=answer: answer)
    monkeypatch.setattr(torch.backends.cudnn, "version", lambda: 92600)
    monkeypatch.setattr(torch.version, "cuda", "13.2")
    said = bench("doctor")[1]
    assert "built for CUDA 13.2\ndriver 580.65.06, cuDNN 92600\n" in said
    assert "cuda:0: NVIDIA H100, 80 GiB, 60 free, bf16 yes" in said


def test_downloads_are_verified(bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from contrastbench.domains import download
    from contrastbench.domains.declaration import Dataset
    from contrastbench.domains.graph import DATASETS

    whole = Dataset(
        "TOY", "", "https://example.invalid/TOY.zip", hashlib.sha256(b"whole").hexdigest()
    )
    monkeypatch.setitem(DATASETS, "TOY", whole)
    monkeypatch.setattr(download, "cache_folder", lambda: tmp_path)
    for data, code, said in ((b"half", 1, "DAMAGED"), (b"whole", 0, "sha256 verified")):
        (tmp_path / "TOY.zip").write_bytes(data)
        found, out, _ = bench("data", "verify", "TOY")
        assert (found, said in out) == (code, True)
    assert bench("data", "fetch", "TOY")[1] == f"TOY: {tmp_path / 'TOY.zip'}\n"


@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGKILL, -9)]
)
def test_a_kill_loses_no_finished_seed(tmp_path: Path, how: signal.Signals, code: int) -> None:
    start = sys.executable if how == signal.SIGKILL else python()
    with (
        (tmp_path / "said").open("w") as err,
        subprocess.Popen(
            [start, "-c", MAIN, *RUN, "--tiny", "--json", "--seeds", "0-999"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        said = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(how)
        said += [json.loads(line) for line in process.stdout if line.endswith("}\n")]
    assert process.returncode == code
    records = sorted(tmp_path.rglob("*.json"))
    assert {record["seed"] for record in said} <= {read_record(path)["seed"] for path in records}
    assert len(records) <= len(said) + 1
    if how != signal.SIGKILL:
        assert not list(tmp_path.rglob("*.tmp"))
    lines = (tmp_path / "said").read_text().splitlines()
    said_so = [line for line in lines if line.endswith(KEPT)]
    word = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}.get(how)
    assert said_so == ([f"{word}: {KEPT}"] if word else [])


def test_alone_it_shows_its_help(bench) -> None:
    code, alone = bench()[:2]
    assert code == 0
    assert all(bench(word)[1] == alone for word in ("-h", "--help"))
    assert "..." not in alone.split("Run:")[1], "no summary is cut"
    titles = re.findall(r"^(\w+):$", alone, re.MULTILINE)
    assert titles == ["Options", "Run", "Compare", "Check", "Data"]
    shown = re.findall(r"^  ([a-z][a-z-]*)  ", alone, re.MULTILINE)
    assert sorted(shown) == sorted(get_command(cli.app).commands), "each command is in one group"
    assert "Run every missing cell of a table or of a sweep file.\n" in alone


@pytest.mark.skipif(not provenance().version, reason="neither git nor pip knows the version")
def test_the_version_is_that_of_the_code(bench) -> None:
    version, commit = provenance()
    assert bench("--version")[1] == f"contrastbench {version}\n"
    assert bench("doctor")[1].splitlines()[1] == f"contrastbench {version}"
    assert contrastbench.__version__ == version
    named = version and re.search(r"\+g([0-9a-f]+)", version)
    assert not named or (commit and commit.startswith(named[1]))


def test_recipes_are_listed_with_defaults_choices_and_presets(bench) -> None:
    text = bench("list", "recipes", "tabular")[1]
    assert text.startswith("tabular: presets small, renyicl, scarf\n")
    assert "    optimizer=sgd (adam|sgd)\n" in text
    assert "    target=null (str|null; the column of classes of one's own)\n" in text
    assert "    widths=[256,256,512] (list of int)\n" in text
    assert all(f"\n{name}: presets" in f"\n{bench('list', 'recipes')[1]}" for name in DOMAINS)
    for line in text.splitlines()[1:]:
        pair = line.split(" (")[0].strip()
        make_recipe("tabular", parse_pairs("--recipe", [pair]))


COMMANDS = [name for group in cli.GROUPS.values() for name in group]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_help_has_examples_on_lines_of_their_own(bench, name: str) -> None:
    code, out, _ = bench(name, "--help")
    lines = out.splitlines()
    (start,) = (k for k, line in enumerate(lines) if line in ("  Example:", "  Examples:"))
    examples = lines[start + 1 :]
    assert (code, examples != []) == (0, True)
    assert all(line.startswith(f"    bench {name}") for line in examples)


def test_a_library_that_is_missing_is_named_before_torch_is_imported(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    code, _, err = bench("run", "--domain", "image", "--loss", "adnce")
    line = "bench: domain image needs torchvision, which is not installed: pip install "
    assert (code, err) == (2, line + '"contrastbench[image]"\n')


class Full(io.StringIO):
    write = full_disk


def test_an_output_on_a_full_disk_is_one_line(bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Full())
    code, _, err = bench("list", "domains")
    assert code == 2
    fault = "bench: cannot write the output (No space left on device)"
    assert err == f"{fault}: make room, or use another disk\n"


@pytest.mark.parametrize("make", [bytearray, torch.empty])
def test_too_little_memory_is_one_line(make, bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "domain_lines", lambda: make(2**55))
    code, _, err = bench("list", "domains")
    assert (code, len(err.splitlines())) == (1, 1)
    assert err.startswith("bench: there is too little memory (")


def test_a_failed_check_says_what_helps_at_every_setting(
    bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def check_loss(loss: str, **params: object) -> list[CheckResult]:
        tried.append(params)
        return [CheckResult("tiles", len(tried) == 1, "why", "" if len(tried) == 1 else "a remedy")]

    monkeypatch.setattr("contrastbench.losses.laws.check_loss", check_loss)
    code, out, _ = bench("check-loss", "adnce(temperature=0.1)", "adnce(temperature=0.2)")
    assert tried == [{"temperature": 0.1}, {"temperature": 0.2}]
    assert (code, out.count("try: a remedy")) == (1, 1)
    assert "adnce(temperature=0.2):\n" in out
    assert "1 of 2 checks passed; the checks after a failed one" in out
