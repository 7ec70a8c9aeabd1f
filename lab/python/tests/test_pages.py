"""The Python of the pages, block by block in one interpreter for each page."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PAGES = ["docs/guide/python.md", "lab/python/README.md"]
BLOCK = re.compile(r"(?P<above>[^\n]*)\n```python\n(?P<code>.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = list(BLOCK.finditer((ROOT / page).read_text()))
    run = [block["code"] for block in blocks if "not run:" not in block["above"]]
    assert run
    for code in run:
        exec(compile(code, page, "exec"), names)  # noqa: S102 - the pages are our own


def test_what_the_guide_says_of_check_controller_holds():
    text = (ROOT / "docs/guide/python.md").read_text()
    [steady] = [block["code"] for block in BLOCK.finditer(text) if "class Steady" in block["code"]]
    names: dict[str, object] = {}
    exec("import weir_rtc, weir_rtc.testing\n" + steady.split("\n\n\nweir_rtc.run")[0], names)  # noqa: S102 - the pages are our own
    with pytest.raises(names["weir_rtc"].WeirError):
        names["weir_rtc"].testing.check_controller(names["Steady"])
