"""Lets Hydra read our configuration folders: singular group names over singular or plural folders, users' ones first.

Hydra has one class per kind of search-path entry. Ours takes the place of the one for folders; it keeps the class name,
because Hydra's plugin scan refuses another class for the same kind and leaves one of the same name in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hydra._internal.core_plugins.file_config_source import FileConfigSource as HydraFileConfigSource
from hydra._internal.sources_registry import SourcesRegistry
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigResult
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import Container, DictConfig

from torchlens.settings import catalog

PROVIDER = "torchlens"
PRIMARY = "config"
_PLURALS = {plural: group for group, plural in catalog.GROUPS.items() if plural != group}


class FileConfigSource(HydraFileConfigSource):
    """A folder in which the group `view` is the folder `view`, the folder `views`, or both."""

    def load_config(self, config_path: str) -> ConfigResult:
        """Read one file from the first spelling of its folder that has it."""
        for spelling in self._spellings(config_path):
            if super().is_config(spelling):
                catalog.parse(Path(self.path) / self._normalize_file_name(spelling))
                found = super().load_config(spelling)
                if config_path.startswith("figures/"):
                    _fill_null_entries(found.config)
                return found
        return super().load_config(config_path)

    def is_group(self, config_path: str) -> bool:
        """Whether any spelling of the folder exists; a plural is no group name."""
        return not self._is_plural(config_path) and any(
            super(FileConfigSource, self).is_group(s) for s in self._spellings(config_path)
        )

    def is_config(self, config_path: str) -> bool:
        """Whether any spelling of the folder has the file. The primary configuration is the packaged one only."""
        if config_path == PRIMARY and Path(self.path).resolve() != catalog.packaged():
            return False
        return not self._is_plural(config_path) and any(
            super(FileConfigSource, self).is_config(s) for s in self._spellings(config_path)
        )

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """The names in all spellings of the folder; plural folders go by their group's name."""
        found: set[str] = set()
        for spelling in self._spellings(config_path):
            folder = Path(self.path) / spelling
            for child in folder.iterdir() if folder.is_dir() else ():
                if child.is_dir() and results_filter != ObjectType.CONFIG and not child.name.startswith("__"):
                    found.add(_PLURALS.get(child.name, child.name) if config_path == "" else child.name)
                elif (
                    child.suffix == ".yaml"
                    and results_filter != ObjectType.GROUP
                    and self._is_choice(config_path, child)
                ):
                    found.add(child.stem)
        return sorted(found)

    @staticmethod
    def _is_choice(group: str, path: Path) -> bool:
        """Whether a file is an option of its group; some folders hold data besides."""
        return (group, path.stem) not in catalog.DATA_FILES

    @staticmethod
    def _is_plural(config_path: str) -> bool:
        return config_path.partition("/")[0] in _PLURALS

    @staticmethod
    def _spellings(config_path: str) -> tuple[str, ...]:
        head, slash, rest = config_path.partition("/")
        plural = catalog.GROUPS.get(head, head)
        return (config_path,) if plural == head else (config_path, f"{plural}{slash}{rest}")


def _fill_null_entries(figures: Container) -> None:
    """A figure that is null takes everything from the run; OmegaConf cannot set keys below a null."""
    if isinstance(figures, DictConfig):
        for name in [name for name, entry in figures.items_ex(resolve=False) if entry is None]:
            figures[name] = {}


class UserFolders(SearchPathPlugin):
    """Puts the users' folders before the packaged one. Hydra itself would put --config-dir behind it."""

    folders: Sequence[Path] = ()

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra while it sets up."""
        for folder in self.folders:
            search_path.prepend(PROVIDER, f"file://{folder}", anchor="main")


def install(config_dirs: Sequence[str]) -> None:
    """Make Hydra use both, for this process. Further calls change the folders only."""
    UserFolders.folders = catalog.folders(config_dirs)[:-1]
    plugins = Plugins.instance()
    plugins.register(UserFolders)
    SourcesRegistry.instance().types[FileConfigSource.scheme()] = FileConfigSource
