"""How docstrings are read for the reference: a section `Example:` is runnable, like `Examples:`."""

import re

import griffe


class ExampleSections(griffe.Extension):
    """Rename the section `Example:` (which griffe takes for a remark) to `Examples:` (which it sets as code)."""

    def on_object(self, *, obj, **_) -> None:
        """Look at each module, class, function and attribute once."""
        if obj.docstring is not None:
            obj.docstring.value = re.sub(r"^( *)Example:$", r"\1Examples:", obj.docstring.value, flags=re.M)
