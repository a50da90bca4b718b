"""How the package is read for the reference: runnable examples are set as code, marks for the pages are left out."""

import re

import griffe

_MARK = re.compile(r"^\s*# --8<-- \[(?:start|end):")


class ForTheReference(griffe.Extension):
    """Change what griffe read, before mkdocstrings renders it."""

    def on_object(self, *, obj, **_) -> None:
        """Rename the section `Example:` (which griffe takes for a remark) to `Examples:` (which it sets as code)."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)

    def on_module(self, *, mod, **_) -> None:
        """Blank the lines that mark a section which a page includes; line numbers stay what they are."""
        lines = mod.lines_collection[mod.filepath]
        lines[:] = ["" if _MARK.match(line) else line for line in lines]

    def on_package(self, *, pkg, **_) -> None:
        """Show each name where it is written, and not once more in the package that hands it on (`__all__`)."""
        modules = [pkg]
        while modules:
            module = modules.pop()
            modules += [inner for inner in module.modules.values() if not inner.is_alias]
            module.exports = None
