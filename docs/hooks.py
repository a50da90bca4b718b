"""What mkdocs does after a build: take the names of other hosts out of the theme's script.

The theme's script holds a few addresses that it would load from only in some cases (a diagram, an old browser, a
repository link). None of these cases occurs here; and so that none ever can, the addresses become empty.
"""

import re
from pathlib import Path

OTHER_HOST = re.compile(r"https://(?:unpkg\.com|api\.github\.com|\$\{\w+\}/api/v4)[\w@./-]*")


def on_post_build(config) -> None:
    """Empty the addresses in each built bundle, and drop the source maps, which point to nothing that is read."""
    scripts = Path(config.site_dir, "assets", "javascripts")
    for bundle in scripts.rglob("*.js"):
        text = bundle.read_text(encoding="utf-8")
        text = re.sub(r"\n?//# sourceMappingURL=.*", "", OTHER_HOST.sub("about:blank#", text))
        bundle.write_text(text, encoding="utf-8")
    for source_map in Path(config.site_dir, "assets").rglob("*.map"):
        source_map.unlink()
