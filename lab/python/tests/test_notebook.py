"""The notebook, run cell by cell by a real Jupyter kernel."""

import pathlib

import nbclient
import nbformat

NOTEBOOK = pathlib.Path(__file__).parents[3] / "examples/notebook/weir.ipynb"


def test_every_cell_shows_a_table_or_the_report_of_its_runs(tmp_path):
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    # A cell that raises ends this with its traceback. The folder is not that of the notebook, so it needs no files.
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    pages = [
        [output["data"]["text/html"] for output in cell.outputs if "data" in output]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]
    assert all(len(of_cell) == 1 for of_cell in pages)
    # The first cell is a run: its page is the report, which carries its records and needs no network.
    assert "srcdoc" in pages[0][0] and "lund/rmcat-ns3" in pages[0][0]
    assert all("<table" in of_cell[0] for of_cell in pages[1:])
