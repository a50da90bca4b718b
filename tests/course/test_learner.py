"""What a learner sees: which file was tested, where it goes wrong, and how one gets from 0 to 100 %."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys

import pytest

from tests.course.learner import Learner, too_wide
from tests.fresh_process import ROOT
from tfdistedu.course.lesson import find_lesson
from tfdistedu.course.mistakes import load_mistakes

RING = "from tfdistedu.collectives.algorithms.rings import ring_all_gather\n"
ANSWERS = '{"rounds": 12, "bytes_sent_by_rank_0": 9600, "additions_in_rank_0": 1200}'
COUNTS = '{"batches": 6, "optimizer_iterations": 6, "replica_step_in_python": 8, "replica_step_in_the_graph": 24}'

ENDLESS = """
def ring_all_gather(n_ranks):
    while True:
        try:
            pass
        except BaseException:
            pass
"""


@pytest.fixture
def learner(tmp_path):
    return Learner(tmp_path)


def test_the_first_plain_pytest_makes_exercise_py_says_so_and_nothing_is_started(learner):
    done = learner.run("pytest", "lessons/07_allreduce")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "testing lessons/07_allreduce/exercise.py"
    for name in ("ring_all_gather", "predict_ring", "check_ring"):
        assert f"allreduce.{name}: not started" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr
    before = learner.read("allreduce", "exercise.py")
    learner.write("allreduce", "# mine\n")
    mine = learner.read("allreduce", "exercise.py")
    learner.run("pytest", "lessons/07_allreduce", "--exercise", "predict_ring")
    assert learner.learn("start", "allreduce").returncode == 0
    assert mine == learner.read("allreduce", "exercise.py") != before


def test_an_exercise_that_ends_the_process_is_red_and_named_and_no_other_subject_reads_it(learner):
    learner.write("allreduce", "raise SystemExit\n")
    done = learner.run("pytest", "lessons/07_allreduce")
    assert done.returncode == 1
    assert done.stdout.splitlines()[0] == "testing lessons/07_allreduce/exercise.py"
    assert "raise SystemExit" in done.stdout
    assert learner.run("pytest", "lessons/07_allreduce", "--subject", "reference").returncode == 0
    assert learner.run("tfdistedu.course.gate", "lessons", "allreduce").returncode == 0


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (ENDLESS, "did not end within 5 s; it was at"),
        ("def ring_all_gather(n_ranks):\n    return helper()\n\n\ndef helper():\n    return 1 // 0\n", "1 // 0"),
        ("def ring_all_gather(n_ranks)\n    pass\n", "this is no Python"),
        ("del ring_all_gather\n", "exercise.py has no function ring_all_gather"),
        ("def ring_all_gather(n_ranks):\n    return [[(0, 1, 0, False)]]\n", "returns no Schedule"),
        ("def ring_all_gather(n_ranks):\n    Schedule('mine', 1, 1, [])\n", "came: None. Is there a return?"),
    ],
)  # fmt: skip
def test_a_failure_shows_the_learners_own_lines_and_none_of_ours(learner, source, says):
    learner.write("allreduce", source)
    done = learner.run("pytest", "lessons/07_allreduce", "--exercise", "ring_all_gather")
    assert done.returncode == 1
    text = " ".join(done.stdout.split())
    assert says in text
    for ours in ("runner.py", "plugin.py", "diagnose.py", "subject.py", "Traceback"):
        assert ours not in done.stdout + done.stderr


def test_a_deadlock_in_a_learners_test_of_rings_ends_and_counts_as_caught(learner):
    learner.write("allreduce", learner.read("allreduce", "mistakes/only_ones.py"))
    done = learner.run("pytest", "lessons/07_allreduce", "--exercise", "check_ring")
    assert "waits_before_it_sends             X" in done.stdout
    assert "drops_the_remainder               X" in done.stdout  # 6, 7 and 16 ones: the seventh is lost
    assert "gathers_at_rank_0                 ." in done.stdout
    assert "Beside yours: weak tests that many write." in " ".join(done.stdout.split())


def test_a_check_without_tensorflow_loads_none_and_no_hypothesis(learner):
    learner.write("allreduce", RING, "import atexit, sys\natexit.register(lambda: print(sorted(sys.modules)))\n")
    done = learner.run("pytest", "lessons/07_allreduce", "--exercise", "ring_all_gather")
    assert done.returncode == 0
    modules = done.stdout.splitlines()[-1]
    assert "'numpy'" in modules
    for heavy in ("'tensorflow'", "'keras'", "'hypothesis'", "'matplotlib'", "'rich'"):
        assert heavy not in modules


def test_a_wrong_prediction_leads_to_the_run_and_never_prints_the_answer(learner):
    learner.write("allreduce", f"def predict_ring():\n    return {ANSWERS.replace('9600', '9601')}\n")
    done = learner.run("pytest", "lessons/07_allreduce", "--exercise", "predict_ring")
    assert "bytes_sent_by_rank_0: the run says" in done.stdout
    assert "9600" not in done.stdout
    assert "watch_ring.py" in done.stdout
    command = " ".join(done.stdout.split()).split("run: python ")[1].split()[:3]
    watched = subprocess.run(
        [sys.executable, *command],
        cwd=learner.home,
        env=learner.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert sum("sends" in line for line in watched.stdout.splitlines()) == 12


def test_a_scripted_learner_goes_through_allreduce_in_40_columns(learner):
    done = learner.learn()
    assert "0 %" in done.stdout
    assert "Next:" in done.stdout
    assert learner.learn("start", "allreduce").returncode == 0
    told = []
    lesson = find_lesson(ROOT / "lessons", "allreduce")
    for mistake in load_mistakes(lesson):
        if mistake.exercise == "all_reduce":
            continue
        learner.write("allreduce", learner.read("allreduce", f"mistakes/{mistake.id}.py"))
        done = learner.learn("check", f"allreduce.{mistake.exercise}")
        assert done.returncode == 1
        assert f"A known mistake does exactly this: {mistake.id}." in " ".join(done.stdout.split()), done.stdout
        told.append(done.stdout)
    for rung in (1, 2, 3, 3):
        done = learner.learn("hint", "allreduce.ring_all_gather")
        assert f"hint {rung} of 3" in done.stdout
        told.append(done.stdout)
    done = learner.learn("show", "allreduce.ring_all_gather")
    assert done.returncode == 1
    assert "Transfer(" not in done.stdout
    assert learner.learn("use", "allreduce").returncode == 1
    learner.write(
        "allreduce", RING, f"def predict_ring():\n    return {ANSWERS}\n", learner.read("allreduce", "reference.py")
        .replace("def predict_ring", "def _ours")
    )  # fmt: skip
    done = learner.learn("check", "allreduce")
    assert done.returncode == 0, done.stdout
    told.append(done.stdout)
    assert learner.learn("show", "allreduce.check_ring").returncode == 0
    done = learner.learn("use", "allreduce")
    assert done.returncode == 0, done.stdout
    assert "furthest weight between two ranks: 0.0e+00" in " ".join(done.stdout.split())
    told.append(done.stdout)
    listed = json.loads(learner.learn("list", "--json", "-").stdout)
    states = {each["id"]: each["state"] for one in listed["lessons"] for each in one["exercises"]}
    assert [state for id, state in states.items() if id.startswith("allreduce.")] == ["passed"] * 3
    told.append(learner.learn("list").stdout)
    everything = "\n".join(told)
    assert everything.isascii()
    assert "\x1b" not in everything
    assert not [line for line in too_wide(everything) if "=" not in line and not line.startswith("_")]


def solve_allreduce(learner) -> None:
    """Write right answers to all exercises of allreduce."""
    mine = f"def predict_ring():\n    return {ANSWERS}\n"
    learner.write("allreduce", learner.read("allreduce", "reference.py"), RING, mine)


def test_a_scripted_learner_goes_through_custom_loop_and_ends_at_100_percent(learner, fresh_processes):
    learner.keep("allreduce", "custom_loop")
    solve_allreduce(learner)
    assert learner.learn("check", "allreduce").returncode == 0
    assert learner.learn("start", "custom_loop").returncode == 0
    stub = learner.read("custom_loop", "stub.py")
    broken = "".join(line for line in stub.splitlines(True) if "take this line out" not in line)
    told = []
    train = [
        mistake.id
        for mistake in load_mistakes(find_lesson(ROOT / "lessons", "custom_loop"))
        if mistake.exercise == "train"
    ]
    assert len(train) >= 3
    wrong = {name: learner.read("custom_loop", f"mistakes/{name}.py") for name in train}
    for name, source in {"as_widely_copied": broken, **wrong, "as_widely_copied again": broken}.items():
        learner.write("custom_loop", source)
        done = learner.warm(fresh_processes, "pytest", "lessons/05_custom_loop", "--exercise", "train")
        assert done.status == 1
        named = f"A known mistake does exactly this: {name.removesuffix(' again')}."
        assert named in " ".join(done.stdout.split()), done.stdout
        told += [done.stdout, learner.learn("hint", "custom_loop.train").stdout]
    assert "example 0 is seen 2 times" in " ".join(told[-2].split())
    mine = f"def predict_counts():\n    return {COUNTS}\n"
    learner.write("custom_loop", learner.read("custom_loop", "reference.py"), mine)
    done = learner.learn("check", "custom_loop")
    assert done.returncode == 0, done.stdout
    told += [done.stdout, done.stderr, learner.learn("list").stdout]
    used = learner.warm(fresh_processes, "tfdistedu", "learn", "use", "custom_loop")
    assert used.status == 0, used.stdout + used.stderr
    assert json.loads(learner.learn("list", "--json", "-").stdout)["percent"] == 100
    assert "All exercises pass" in learner.learn().stdout
    everything = "\n".join([*told, used.stdout])
    assert everything.isascii()
    assert "\x1b" not in everything
    assert not [line for line in too_wide(everything) if "=" not in line and not line.startswith("_")]


EDGES = (
    '{"processes": 8, "addresses_in_each_text": 7, "connections": 42, "cut_in_all_other_texts": 6, '
    '"cut_in_one_text": 1}'
)


def test_a_scripted_learner_goes_through_cluster_and_three_real_processes_read_the_texts(learner, fresh_processes):
    learner.keep("cluster")
    assert learner.learn("start", "cluster").returncode == 0
    stub = learner.read("cluster", "stub.py")
    broken = "".join(line for line in stub.splitlines(True) if "take this line out" not in line)
    mistakes = {m.id: m for m in load_mistakes(find_lesson(ROOT / "lessons", "cluster"))}
    told = []
    # The gate runs every mistake through the same tests; here are those whose texts differ most: not JSON, wrong
    # alone, wrong only together (identity, plan), and one of the other exercise.
    names = ["workers_from_1", "one_text_for_all", "workers_in_another_order", "evaluator_in_the_cluster"]
    sources = {"as_found": broken} | {name: learner.read("cluster", f"mistakes/{name}.py") for name in names}
    for name, source in sources.items():
        learner.write("cluster", source)
        done = learner.run("pytest", "lessons/10_cluster", "--exercise", mistakes[name].exercise)
        assert done.returncode == 1
        assert f"A known mistake does exactly this: {name}." in " ".join(done.stdout.split()), done.stdout
        told.append(done.stdout)
    assert "ps:0, the text: it is a Python dictionary" in " ".join(told[0].split())
    assert "[task-index-counts-the-chief]" in told[1]
    assert "two processes are chief:0 and nobody is worker:0" in " ".join(told[2].split())
    told.append(learner.learn("hint", "cluster.mend_texts").stdout)
    assert learner.learn("use", "cluster").returncode == 1
    mine = f"def predict_edges():\n    return {EDGES}\n"
    learner.write("cluster", learner.read("cluster", "reference.py"), mine)
    done = learner.learn("check", "cluster")
    assert done.returncode == 0, done.stdout
    told += [done.stdout, learner.learn("list").stdout]
    used = learner.warm(fresh_processes, "tfdistedu", "learn", "use", "cluster")
    assert used.status == 0, used.stdout + used.stderr
    assert "worker:1 takes itself for worker:1, brings 100 and gets 111" in " ".join(used.stdout.split())
    assert json.loads(learner.learn("list", "--json", "-").stdout)["percent"] == 100
    everything = "\n".join([*told, used.stdout])
    assert everything.isascii()
    assert "\x1b" not in everything
    assert not [line for line in too_wide(everything) if "=" not in line and not line.startswith("_")]


HANG = '{"workers_that_wait": 2, "waits_for_worker": 1, "all_reduces_that_ended": 10, "first_wrong_meeting": 2}'


def test_a_scripted_learner_goes_through_hang_and_two_real_workers_end_together(learner, fresh_processes):
    learner.keep("hang")
    assert learner.learn("start", "hang").returncode == 0
    stub = learner.read("hang", "stub.py")
    broken = "".join(line for line in stub.splitlines(True) if "take this line out" not in line)
    told = []
    # The gate runs all mistakes; these three are the three ways to go wrong: order, a wait, and lost examples.
    names = ["rank_0_asks_alone", "fewest_batches"]
    sources = {"as_found": broken} | {name: learner.read("hang", f"mistakes/{name}.py") for name in names}
    for name, source in sources.items():
        learner.write("hang", source)
        done = learner.run("pytest", "lessons/12_hang", "--exercise", "train")
        assert done.returncode == 1
        assert f"A known mistake does exactly this: {name}." in " ".join(done.stdout.split()), done.stdout
        told.append(done.stdout)
    assert "meet in call 0 and mean different things" in " ".join(told[0].split())
    assert "worker 0 waits in call 9, examples, for worker 1: nobody can go on" in " ".join(told[1].split())
    assert "exercise.py:" in told[1]
    assert "examples are lost" in " ".join(told[2].split())
    told.append(learner.learn("hint", "hang.train").stdout)
    learner.write("hang", learner.read("hang", "reference.py"), f"def predict_hang():\n    return {HANG}\n")
    done = learner.learn("check", "hang")
    assert done.returncode == 0, done.stdout
    told.append(done.stdout)
    used = learner.warm(fresh_processes, "tfdistedu", "learn", "use", "hang")
    assert used.status == 0, used.stdout + used.stderr
    assert json.loads(learner.learn("list", "--json", "-").stdout)["percent"] == 100
    everything = "\n".join([*told, used.stdout])
    assert everything.isascii()
    assert not [line for line in too_wide(everything) if "=" not in line and not line.startswith("_")]


def test_a_changed_test_makes_a_pass_stale_and_locks_nothing(learner):
    learner.write("allreduce", RING)
    assert learner.learn("check", "allreduce.ring_all_gather").returncode == 0
    with (learner.folder("allreduce") / "test_exercise.py").open("a") as file:
        file.write("\n# changed\n")
    text = learner.learn("list").stdout
    assert "stale   allreduce.ring_all_gather" in text
    assert learner.learn("show", "allreduce.ring_all_gather").returncode == 0


@pytest.mark.parametrize(
    ("slug", "answer", "mistakes", "says", "used"),
    [
        (
            "multi_worker",
            """def predict_batches():
    return {"steps": 4, "examples_of_worker_0": 13, "empty_batches": 3, "lost_if_all_stop_at_the_first_empty": 2}
""",
            ["each_its_own_shuffle", "leaves_out_empty_batches", "shares_first", "shuffled_once"],
            [
                "example 1 is seen 2 times", "worker 2 has 3 batches, and worker 0 has 4",
                "step 0 is not one device's", "epoch 1 has the order of epoch 0",
            ],
            "furthest weight:",
        ),
        (
            "crash",
            """def predict_crash():
    return {"steps_before_the_crash": 18, "steps_done_again": 2, "resumes_in_epoch": 1, "batches_skipped": 6}
""",
            ["forgets_the_velocity", "writes_in_place", "counts_the_step_before_it_is_done", "saves_after_each_epoch"],
            [
                "it ends with other weights", "it cannot start again: 'checkpoint' is half written",
                "batches are left out", "steps are done again",
            ],
            "start 4: weights",
        ),
    ],
)  # fmt: skip
def test_a_scripted_learner_goes_through_a_lesson_on_workers(
    learner, fresh_processes, slug, answer, mistakes, says, used
):
    """The gate runs every mistake; here are some, as a learner meets them: in words, by name, in 40 columns."""
    learner.keep(slug)
    assert learner.learn("start", slug).returncode == 0
    assert ": not started" in " ".join(learner.learn("check", slug).stdout.split())
    told = []
    for name, words in zip(mistakes, says, strict=True):
        learner.write(slug, learner.read(slug, f"mistakes/{name}.py"))
        exercise = load_mistakes(find_lesson(ROOT / "lessons", slug))[0].exercise
        done = learner.run("pytest", str(learner.folder(slug).relative_to(learner.root.parent)), "--exercise", exercise)
        text = " ".join(done.stdout.split())
        assert done.returncode == 1
        assert f"A known mistake does exactly this: {name}." in text, text
        assert words in text, text
        told.append(done.stdout)
    assert learner.learn("use", slug).returncode == 1  # not before it passes
    reference = learner.read(slug, "reference.py")
    learner.write(slug, reference.split("def predict_")[0], answer, "# --8<--" + reference.split("# --8<--", 1)[1])
    done = learner.learn("check", slug)
    assert done.returncode == 0, done.stdout
    ran = learner.warm(fresh_processes, "tfdistedu", "learn", "use", slug)
    assert ran.status == 0, ran.stdout + ran.stderr
    assert used in ran.stdout
    assert json.loads(learner.learn("list", "--json", "-").stdout)["percent"] == 100
    everything = "\n".join([*told, done.stdout, ran.stdout])
    assert everything.isascii()
    assert "\x1b" not in everything


def test_a_pass_stays_one_while_the_next_exercise_is_written_and_until_its_own_function_changes(learner):
    # A pass bound to the whole file would be stale as soon as somebody goes on.
    solved = (RING, f"def predict_ring():\n    return {ANSWERS}\n")
    learner.write("allreduce", RING)
    assert learner.learn("check", "allreduce.ring_all_gather").returncode == 0
    learner.write("allreduce", *solved, "def predict_ring(:\n")
    assert "stale   allreduce.ring_all_gather" in learner.learn("list").stdout  # it cannot be read: nobody knows
    learner.write("allreduce", *solved)
    assert "passed  allreduce.ring_all_gather" in learner.learn("list").stdout
    learner.write("allreduce", "CONSTANT = 1\n", *solved)
    assert "stale   allreduce.ring_all_gather" in learner.learn("list").stdout
    learner.write("allreduce", RING + "ring_all_gather = print\n")
    assert "stale   allreduce.ring_all_gather" in learner.learn("list").stdout


def test_show_has_no_marker_of_the_page(learner):
    done = learner.learn("show", "custom_loop.train", "--anyway")
    assert "def replica_step(x, y):" in done.stdout
    assert "8<" not in done.stdout


def test_what_a_learners_test_says_of_a_right_ring_comes_with_its_line(learner):
    strict = "def check_ring(all_reduce):\n    all_reduce([np.ones(3)] * 2, sent := [])\n    assert sent[0].src == 1\n"
    learner.write("allreduce", strict)
    done = learner.learn("check", "allreduce.check_ring")
    text = " ".join(done.stdout.split())
    assert "came: AssertionError at exercise.py:" in text
    assert ": assert sent[0].src == 1" in text
    assert "Stuck? tfdistedu learn hint allreduce.check_ring" in text


def test_reset_keeps_what_was_written(learner):
    learner.write("allreduce", RING)
    mine = learner.read("allreduce", "exercise.py")
    done = learner.learn("reset", "allreduce")
    assert done.returncode == 0
    (backup,) = learner.folder("allreduce").glob("exercise.*.py")
    assert backup.read_text(encoding="utf-8") == mine
    assert learner.read("allreduce", "exercise.py") == learner.read("allreduce", "stub.py")


def test_outside_of_lessons_learn_says_how_to_get_some(learner, tmp_path):
    done = learner.learn(cwd=tmp_path)
    assert done.returncode == 2
    assert "tfdistedu learn init" in done.stderr


def test_two_courses_at_once_keep_their_own_progress(learner, tmp_path):
    other = Learner(tmp_path / "other")
    learner.write("allreduce", RING)
    assert learner.learn("check", "allreduce.ring_all_gather").returncode == 0
    assert "passed" not in other.learn("list").stdout
    assert "passed" in learner.learn("list").stdout


def test_a_damaged_progress_file_is_an_empty_one(learner):
    (learner.root / ".progress.json").write_text("{ not json", encoding="utf-8")
    assert learner.learn("list").returncode == 0


def test_init_and_update_never_touch_an_exercise(learner, tmp_path):
    shutil.rmtree(learner.root)
    done = learner.learn("init", "kurs")
    assert done.returncode == 0, done.stderr
    folder = learner.home / "kurs" / "lessons" / "07_allreduce"
    assert not (folder / "exercise.py").exists()
    (folder / "exercise.py").write_text("# meins, mit Umlaut: ü\n", encoding="utf-8")
    before = (folder / "exercise.py").read_bytes()
    (folder / "hints.md").write_text("old", encoding="utf-8")
    (folder / "mistakes" / "gone.py").write_text("old", encoding="utf-8")
    own = learner.home / "kurs" / "lessons" / "99_mine"
    own.mkdir()
    (own / "notes.md").write_text("mine", encoding="utf-8")
    for renewed in ("2 files renewed", "0 files renewed"):
        assert renewed in learner.learn("update", cwd=learner.home / "kurs").stdout
        assert (folder / "exercise.py").read_bytes() == before
    assert not (folder / "mistakes" / "gone.py").exists()
    assert (own / "notes.md").exists()
    assert learner.learn("init", "kurs").returncode == 2
    done = learner.learn("init", "mein Kurs")
    assert "cd 'mein Kurs' && tfdistedu learn" in " ".join(done.stdout.split())
    assert "cd 'mein Kurs' && tfdistedu learn update" in learner.learn("init", "mein Kurs").stderr


def test_the_clone_itself_is_renewed_by_git(learner):
    done = learner.learn("update", cwd=ROOT)
    assert done.returncode == 2
    assert "git pull" in done.stderr


def test_watch_checks_at_every_save_until_it_is_interrupted(learner):
    learner.write("allreduce", learner.read("allreduce", "stub.py"))
    words = [sys.executable, "-m", "tfdistedu", "learn", "watch", "allreduce"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=learner.home, env=learner.environment, text=True, **pipes) as process:
        try:
            seen = _read_until(process, "Waiting for the next save")
            assert "allreduce.ring_all_gather: not started" in seen
            learner.write("allreduce", RING)
            seen = _read_until(process, "Waiting for the next save")
            assert "allreduce.ring_all_gather: not started" not in seen
            assert "allreduce.predict_ring: not started" in seen
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=20) == 130
        finally:
            process.kill()


def _read_until(process, words):
    """Collect lines up to the one with these words; the test's own time limit ends a wait for ever."""
    lines = []
    while not lines or words not in lines[-1]:
        lines.append(process.stdout.readline())
        assert lines[-1], f"it ended: {''.join(lines)} {process.stderr.read()}"
    return "".join(lines)
