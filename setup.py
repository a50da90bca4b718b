"""What pyproject.toml cannot say: the wheel carries `lessons/`, as tfdistedu/_lessons, without anybody's own work."""

from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py


class BuildWithLessons(build_py):
    """Copies the lessons into the package while a wheel is built; an editable install uses the folder itself."""

    def run(self) -> None:
        """Build, then copy."""
        super().run()
        if not self.editable_mode:
            for file, target in self._lessons():
                self.mkpath(str(target.parent))
                self.copy_file(str(file), str(target))

    def get_outputs(self, include_bytecode: int = 1) -> list[str]:
        """Name the copies too, or the wheel would leave them out."""
        return [*super().get_outputs(include_bytecode), *(str(target) for _, target in self._lessons())]

    def _lessons(self) -> list[tuple[Path, Path]]:
        """Return from where to where."""
        root, target = Path("lessons"), Path(self.build_lib) / "tfdistedu" / "_lessons"
        ours = [file for file in sorted(root.rglob("*")) if file.is_file() and "__pycache__" not in file.parts]
        ours = [file for file in ours if not file.name.startswith(("exercise.", ".progress"))]
        return [(file, target / file.relative_to(root)) for file in ours]


setup(cmdclass={"build_py": BuildWithLessons})
