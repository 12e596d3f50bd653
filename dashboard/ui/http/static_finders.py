"""Static files from installed Python packages: Chart.js from django-unfold, Plotly from plotly."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

PACKAGED_FILES = {
    "vendor/chart.js": ("unfold", "static/unfold/js/chart/chart.js"),
    "vendor/plotly.min.js": ("plotly", "package_data/plotly.min.js"),
}


class PackagedAssetsFinder(BaseFinder):
    """Finds each packaged file under one stable name."""

    def find(self, path: str, find_all: bool = False, **kwargs: Any) -> Any:
        if path not in PACKAGED_FILES:
            return []
        file = str(_source(path))
        return [file] if find_all else file

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[tuple[str, Any]]:
        for path in PACKAGED_FILES:
            yield path, _SingleFileStorage(path)


class _SingleFileStorage(FileSystemStorage):
    """A storage that holds one packaged file under its stable name."""

    def __init__(self, path: str) -> None:
        super().__init__(location=_source(path).parent)
        self.prefix = ""
        self._file = _source(path)

    def path(self, name: str) -> str:
        return str(self._file)


def _source(path: str) -> Path:
    package, inside = PACKAGED_FILES[path]
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise FileNotFoundError(
            f"the package {package} is not installed; run pip install -r requirements.txt"
        )
    return Path(spec.submodule_search_locations[0]) / inside
