"""`tfdistedu learn`: where am I, what is next, and is it right? On the folder `lessons` found from here upwards."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tfdistedu.cli.output import JSON_OPTION, check_writable, console, write_json

if TYPE_CHECKING:
    from tfdistedu.course.lesson import Exercise, Lesson

app = typer.Typer(help="Lessons with exercises: where you are, what is next, and is it right?")

_LESSON = typer.Argument(None, metavar="[LESSON]", help="A lesson, such as allreduce; the next one if left out.")
_EXERCISE = typer.Argument(
    None, metavar="[EXERCISE]", help="Such as allreduce.ring_all_gather; the next one if left out."
)


@app.callback(invoke_without_command=True)
def learn(context: typer.Context) -> None:
    """Say where you are, and the one command that comes next."""
    if context.invoked_subcommand is not None:
        return
    course = _Course()
    _say(f"{course.percent()} % of {course.root}")
    course.say_next(course.lessons[-1])


@app.command("list")
def list_lessons(json_file: str | None = JSON_OPTION) -> None:
    """List lessons and exercises, and how they stand."""
    check_writable(json_file)
    course = _Course()
    write_json(
        {"percent": course.percent(), "lessons": [course.as_data(lesson) for lesson in course.lessons]}, json_file
    )
    if json_file == "-":
        return
    out = console()
    marks = {"passed": "green", "stale": "yellow"}
    for lesson in course.lessons:
        _say(f"{lesson.folder.name}: {lesson.title} ({lesson.minutes} minutes)")
        for exercise in lesson.exercises:
            state = course.progress.state(lesson, exercise)
            out.print(f"  {state:<7} {exercise.id}", style=marks.get(state), soft_wrap=True)
            if state == "stale":
                _say("it passed, and file or tests changed since; check renews it", "          ")
    _say(f"{course.percent()} %")


@app.command()
def start(lesson: str | None = _LESSON) -> None:
    """Make exercise.py from the stub; one that is there stays as it is."""
    from tfdistedu.course.subject import start_exercise

    course = _Course()
    chosen = course.lesson(lesson)
    fresh = not (chosen.folder / "exercise.py").is_file()
    file = start_exercise(chosen)
    _say(f"{chosen.title}. {chosen.question}")
    for objective in chosen.objectives:
        _say(objective, "  - ")
    _say(f"{'Made' if fresh else 'There already:'} {course.shown(file)}")
    page = chosen.folder / "page.md"
    if page.is_file():
        _say(f"Read: {course.shown(page)}")
    _say("Next: " + _command("check", chosen.slug))


@app.command(short_help="Run the tests of a lesson or of one exercise.")
def check(name: str | None = _LESSON, json_file: str | None = JSON_OPTION) -> None:
    """Run the tests of a lesson, or of one exercise (allreduce.ring_all_gather): pytest, with a deadline."""
    from tfdistedu.course.check import check_lesson

    check_writable(json_file)
    course = _Course()
    lesson, exercise = course.lesson_and_exercise(name)
    status, report = check_lesson(lesson, exercise, quiet=json_file == "-")
    write_json(report, json_file)
    if status == 0 and json_file != "-":
        course.say_next(lesson)
    elif status == 1 and json_file != "-":
        failed = [failure["exercise"] for failure in report.get("failures", [])]
        _say("Stuck? " + _command("hint", *(failed[:1] or [lesson.slug])))
    raise typer.Exit(status)


@app.command(short_help="Give one hint more, of three.")
def hint(name: str | None = _EXERCISE) -> None:
    """Give one hint more: first a question, then where to look, then nearly the line."""
    from tfdistedu.course.hints import hints_for

    course = _Course()
    lesson, exercise = course.exercise(name)
    hints = hints_for(lesson, exercise)
    shown = min(course.progress.hints(exercise) + 1, len(hints))
    course.progress.hinted(exercise, shown)
    _say(f"{exercise.id}, hint {shown} of {len(hints)}")
    for number, text in enumerate(hints[:shown], 1):
        _say(text, f"{number}. ")


@app.command()
def show(
    name: str | None = _EXERCISE,
    anyway: bool = typer.Option(False, "--anyway", help="Also before yours passes."),
) -> None:
    """Show how we wrote it, beside yours."""
    from tfdistedu.course.compare import compare

    course = _Course()
    lesson, exercise = course.exercise(name, passed=True)
    if not anyway and course.progress.state(lesson, exercise) not in ("passed", "stale"):
        _say(f"{exercise.id} does not pass yet. If you want to see ours now: {_command('show', exercise.id)} --anyway")
        raise typer.Exit(1)
    print(compare(lesson, exercise) or "Yours is ours, line by line.")


@app.command()
def use(lesson: str | None = _LESSON) -> None:
    """Let your functions drive the real thing."""
    from tfdistedu.course.check import use_lesson

    course = _Course()
    chosen = course.lesson(lesson, last=True)
    raise typer.Exit(use_lesson(chosen, course.progress, _say))


@app.command()
def reset(lesson: str = typer.Argument(..., metavar="LESSON")) -> None:
    """Begin a lesson anew; what you wrote is kept under another name."""
    from tfdistedu.course.layout import reset as reset_lesson

    course = _Course()
    chosen = course.lesson(lesson)
    backup = reset_lesson(chosen)
    _say(f"Yours is kept as {course.shown(backup)}" if backup else "There was nothing to keep.")
    _say(f"New: {course.shown(chosen.folder / 'exercise.py')}")


@app.command()
def init(folder: str = typer.Argument(..., metavar="DIR", help="Where to; it is made if needed.")) -> None:
    """Lay the lessons out in a folder of yours."""
    from tfdistedu.course.layout import init as init_course

    root = init_course(Path(folder))
    _say(f"The lessons are in {root}")
    _say(f"Next: cd {shlex.quote(folder)} && tfdistedu learn")


@app.command()
def update() -> None:
    """Renew the lessons, all files but your exercise.py."""
    from tfdistedu.course.layout import update as update_course

    changed = update_course(_Course().root)
    for file in changed:
        _say(f"renewed {file}")
    _say(f"{len(changed)} files renewed; no exercise.py was touched.")


@app.command()
def watch(lesson: str | None = _LESSON) -> None:
    """Check again whenever exercise.py is saved, until Ctrl-C."""
    from tfdistedu.course.check import changes_of, check_lesson
    from tfdistedu.course.subject import start_exercise

    chosen = _Course().lesson(lesson)
    for _ in changes_of(start_exercise(chosen)):
        check_lesson(chosen, None)
        _say("Waiting for the next save; Ctrl-C ends this.")
        sys.stdout.flush()  # into a pipe too: whoever reads it waits for just this line


class _Course:
    """The lessons found from here, and how far one is."""

    def __init__(self) -> None:
        from tfdistedu.course.lesson import all_lessons, find_root
        from tfdistedu.course.progress import Progress

        self.root = find_root(Path.cwd())
        self.lessons = all_lessons(self.root)
        self.progress = Progress(self.root)

    def shown(self, file: Path) -> str:
        """Write a path as from here."""
        import os

        return os.path.relpath(file)

    def percent(self) -> int:
        """Return how much is done."""
        from tfdistedu.course.progress import percent

        return percent([self.progress.state(lesson, e) for lesson in self.lessons for e in lesson.exercises])

    def next_exercise(self) -> tuple[Lesson, Exercise] | None:
        """Return the first exercise that does not pass: in the lesson that was begun last, else in order."""
        open_ones = [
            (lesson, exercise)
            for lesson in self.lessons
            for exercise in lesson.exercises
            if self.progress.state(lesson, exercise) in ("new", "started")
        ]
        begun = [pair for pair in open_ones if self.progress.state(*pair) == "started"]
        return (begun or open_ones or [None])[0]

    def say_next(self, last: Lesson) -> None:
        """Say what is next: the exercise, and one command."""
        nxt = self.next_exercise()
        if nxt is None:
            _say("All exercises pass. To see what you built at work: " + _command("use", last.slug))
            return
        lesson, exercise = nxt
        _say(f"{lesson.title}, {exercise.name}: {exercise.asks}")
        if self.progress.state(lesson, exercise) == "new":
            _say("Next: " + _command("start", lesson.slug))
        else:
            _say(f"Edit {self.shown(lesson.folder / 'exercise.py')}. Next: " + _command("check", exercise.id))

    def lesson(self, name: str | None, last: bool = False) -> Lesson:
        """Return the lesson that is meant."""
        from tfdistedu.course.lesson import find_lesson

        if name is not None:
            return find_lesson(self.root, name.split(".")[0])
        nxt = self.next_exercise()
        return nxt[0] if nxt else self.lessons[-1 if last else 0]

    def lesson_and_exercise(self, name: str | None) -> tuple[Lesson, Exercise | None]:
        """Return the lesson that is meant, and the exercise if one is named."""
        lesson = self.lesson(name)
        return lesson, lesson.exercise(name) if name and "." in name else None

    def exercise(self, name: str | None, passed: bool = False) -> tuple[Lesson, Exercise]:
        """Return the exercise that is meant: the one named, or the lesson's first that does not pass (or does)."""
        lesson, exercise = self.lesson_and_exercise(name)
        if exercise is None:
            states = [(self.progress.state(lesson, each) in ("passed", "stale"), each) for each in lesson.exercises]
            fitting = [each for done, each in states if done == passed]
            exercise = (fitting or lesson.exercises)[-1 if passed and fitting else 0]
        return lesson, exercise

    def as_data(self, lesson: Lesson) -> dict:
        """Return a lesson as plain data."""
        exercises = [
            {"id": each.id, "kind": each.kind, "state": self.progress.state(lesson, each)} for each in lesson.exercises
        ]
        return {"slug": lesson.slug, "title": lesson.title, "minutes": lesson.minutes, "exercises": exercises}


def _say(text: str, label: str = "") -> None:
    """Print a text, wrapped to the terminal; words that are longer than a line stay whole."""
    from tfdistedu.course.wrong import wrapped

    print(wrapped(text, shutil.get_terminal_size((100, 24)).columns, label))


def _command(*words: str) -> str:
    """Write a command of this family."""
    return " ".join(["tfdistedu learn", *words])
