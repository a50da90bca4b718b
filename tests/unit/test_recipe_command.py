"""`tfdistedu recipe`: what is shown is the file, what is copied is the file, and nothing is overwritten unasked."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import zipfile
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from tests.fresh_process import ROOT
from tfdistedu.cli import main
from tfdistedu.cli.recipe import head, recipes
from tfdistedu.errors import BadInput

NAMES = {
    "batchnorm_dropout_metrics",
    "clip_and_accumulate",
    "equals_one_device",
    "evaluate_exactly",
    "input_exactly_once",
    "mirrored_custom_loop",
    "mirrored_fit",
    "mixed_precision_loop",
    "multi_worker_custom_loop",
    "multi_worker_fit",
    "pytest_two_workers",
    "resume_after_a_crash",
}
# These start other processes or are started as several: with the lines for that they are longer.
RUN_AS = {name: f"tfdistedu run --workers {{}} {name}.py" for name in NAMES if name.startswith("multi_worker")} | {
    "input_exactly_once": "tfdistedu run --workers 3 input_exactly_once.py",
    "resume_after_a_crash": "tfdistedu run --workers 2 --restarts 1 resume_after_a_crash.py --crash-at 9",
    "pytest_two_workers": "pytest pytest_two_workers.py",
}
ON_WORKERS = set(RUN_AS) - {"pytest_two_workers"}
FILES = {name: ROOT / "tfdistedu" / "recipes" / f"{name}.py" for name in sorted(NAMES)}


def status_of(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["recipe", *arguments])
    return end.value.code


def test_all_recipes_are_found():
    assert set(recipes()) == NAMES


def test_list_gives_each_name_with_the_first_line_of_its_file(capsys):
    assert status_of("list", "--json", "-") == 0
    entries = json.loads(capsys.readouterr().out)["recipes"]
    assert [entry["name"] for entry in entries] == sorted(NAMES)
    for entry in entries:
        first = FILES[entry["name"]].read_text(encoding="utf-8").splitlines()[0]
        assert first == f'"""{entry["summary"]}'


def test_list_as_a_table_names_all_recipes(capsys):
    assert status_of("list") == 0
    out = capsys.readouterr().out
    assert all(name in out for name in NAMES)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_show_writes_the_file_byte_for_byte(name, capfdbinary):
    assert status_of("show", name) == 0
    assert capfdbinary.readouterr().out == FILES[name].read_bytes()


def test_copy_writes_the_file_and_prints_only_its_path(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert status_of("copy", "mirrored_fit") == 0
    assert capsys.readouterr().out == "mirrored_fit.py\n"
    assert (tmp_path / "mirrored_fit.py").read_bytes() == FILES["mirrored_fit"].read_bytes()


def test_copy_overwrites_only_when_forced(tmp_path, capsys):
    mine = tmp_path / "mirrored_fit.py"
    mine.write_text("my work")
    assert status_of("copy", "mirrored_fit", "--to", str(tmp_path)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "exists already" in captured.err
    assert "--force" in captured.err
    assert mine.read_text() == "my work"
    assert status_of("copy", "mirrored_fit", "--to", str(tmp_path), "--force") == 0
    assert capsys.readouterr().out == f"{mine}\n"
    assert mine.read_bytes() == FILES["mirrored_fit"].read_bytes()


def test_copy_does_not_write_through_a_link_that_leads_nowhere(tmp_path):
    # A check "does the file exist?" would say no here, and the write would make the link's target.
    (tmp_path / "mirrored_fit.py").symlink_to(tmp_path / "elsewhere.py")
    assert status_of("copy", "mirrored_fit", "--to", str(tmp_path)) == 2
    assert not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize(
    ("folder", "says"),
    [("missing", "does not exist; make it first: mkdir -p"), ("file", "is a file, not a folder")],
)
def test_copy_into_what_is_no_folder_says_so(folder, says, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert status_of("copy", "mirrored_fit", "--to", str(tmp_path / folder)) == 2
    assert says in capsys.readouterr().err


def test_copy_into_a_folder_that_cannot_be_written_names_the_path_and_the_way_out(tmp_path, monkeypatch, capsys):
    # Not by permissions: a test that runs as root may write everywhere.
    def refuse(self, *_):
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "open", refuse)
    assert status_of("copy", "mirrored_fit", "--to", str(tmp_path)) == 2
    error = capsys.readouterr().err
    assert f"cannot write {tmp_path / 'mirrored_fit.py'} (permission denied)" in error
    assert "--to" in error


def test_other_spellings_of_a_name_are_understood(capfdbinary):
    assert status_of("show", "mirrored-fit.py") == 0
    assert capfdbinary.readouterr().out == FILES["mirrored_fit"].read_bytes()


@pytest.mark.parametrize("command", ["show", "copy"])
def test_an_unknown_name_ends_with_status_2_and_the_nearest_name(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert status_of(command, "mirored_fit") == 2
    assert "Did you mean mirrored_fit?" in capsys.readouterr().err
    assert status_of(command, "nothing like it") == 2
    assert "There are batchnorm_dropout_metrics, " in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_neither_listing_nor_showing_imports_tensorflow():
    code = (
        "import sys\nfrom tfdistedu.cli import main\n"
        "try:\n    main(['recipe', sys.argv[1], *sys.argv[2:]])\n"
        "except SystemExit as end:\n    assert not end.code\n"
        "assert 'tensorflow' not in sys.modules, 'tensorflow was imported'\n"
    )
    for arguments in (["list"], ["show", "mirrored_fit"]):
        subprocess.run([sys.executable, "-c", code, *arguments], cwd=ROOT, check=True, capture_output=True)


def test_recipes_are_found_in_a_zip_too(tmp_path):
    # Nothing may rely on the package being a folder: a file path made from __file__ would pass everywhere else.
    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as zipped:
        for path in sorted((ROOT / "tfdistedu").rglob("*.py")):
            zipped.write(path, path.relative_to(ROOT))
    code = (
        f"import sys\nsys.path.insert(0, {str(archive)!r})\nfrom tfdistedu.cli.recipe import recipes\n"
        "import tfdistedu\nassert '.zip' in tfdistedu.__file__\nprint(*recipes())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert set(done.stdout.split()) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_recipe_stands_alone_and_is_short(name):
    source = FILES[name].read_text(encoding="utf-8")
    imported = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.split(".")[0])
    assert imported - set(sys.stdlib_module_names) <= {"tensorflow", "keras", "numpy"}
    assert len(source.splitlines()) <= (150 if name in RUN_AS else 100)
    assert source.lower().count("your data here") == 1
    functions = [node.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    assert functions.count("make_data") == 1
    assert "def make_data():  # your data here" in source


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_recipe_uses_only_public_names(name):
    private = [
        node.attr
        for node in ast.walk(ast.parse(FILES[name].read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
    ]
    assert private == []


@pytest.mark.parametrize("name", sorted(NAMES))
def test_the_head_of_a_recipe_says_what_it_shows_how_to_run_it_and_what_it_avoids(name):
    entry = head(FILES[name].read_text(encoding="utf-8"))
    assert entry["run"].startswith(RUN_AS.get(name, f"python {name}.py").format(2))
    assert min(len(entry[part]) for part in ("summary", "shows", "avoids")) > 20


def test_a_head_without_its_parts_is_refused():
    with pytest.raises(BadInput, match="lacks Run, Avoids"):
        head('"""One line.\n\nShows: something.\n"""\n')


def test_a_head_is_parsed_and_not_run():
    text = '"""One line.\n\nShows:  this,\n        and that.\nRun:    it\nAvoids: x: y\n"""\nraise SystemExit(9)\n'
    assert head(text) == {"summary": "One line.", "shows": "this, and that.", "run": "it", "avoids": "x: y"}


def text_of_make_strategy(name: str) -> str:
    source = FILES[name].read_text(encoding="utf-8")
    (function,) = [
        node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef) and node.name == "make_strategy"
    ]
    return ast.get_source_segment(source, function)


def test_the_copies_of_make_strategy_have_not_drifted_apart():
    # Standalone files must repeat it; equals_one_device has another rule, for one GPU would prove nothing there.
    for names in (NAMES - ON_WORKERS - {"equals_one_device", "pytest_two_workers"}, ON_WORKERS):
        assert len({text_of_make_strategy(name) for name in names}) == 1


@pytest.mark.parametrize(
    ("name", "gpus", "devices"),
    [
        ("mirrored_fit", 0, "CPU:0 CPU:1 CPU:2 CPU:3"),
        ("mirrored_fit", 1, "GPU:0"),
        ("mirrored_fit", 2, "GPU:0 GPU:1"),
        ("mirrored_fit", 8, "GPU:0 GPU:1 GPU:2 GPU:3"),
        ("equals_one_device", 0, "CPU:0 CPU:1 CPU:2 CPU:3"),
        ("equals_one_device", 1, "CPU:0 CPU:1 CPU:2 CPU:3"),
        ("equals_one_device", 4, "GPU:0 GPU:1 GPU:2 GPU:3"),
    ],
)
def test_recipes_take_gpus_where_there_are_some(name, gpus, devices):
    # A stand-in for TensorFlow: the choice is plain Python, and no machine of ours has so many GPUs.
    tf = MagicMock()
    tf.config.list_physical_devices.side_effect = lambda kind: [kind] * (gpus if kind == "GPU" else 1)
    space = {"tf": tf}
    exec(text_of_make_strategy(name), space)
    space["make_strategy"](4)
    (call,) = tf.distribute.MirroredStrategy.call_args_list
    assert call.args[0] == devices.split()
    split = tf.config.set_logical_device_configuration.called
    assert split == devices.startswith("CPU")
    # On GPUs TensorFlow's own way of adding up stays.
    assert call.args[1:] == ((tf.distribute.ReductionToOneDevice(),) if split else ())
