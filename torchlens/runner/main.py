"""`python -m torchlens.run`: from the command line to an exit code.

0: all figures written; 1: some figure or job failed, the others are written; 2: bad configuration, nothing ran;
130: interrupted. Every refusal is one line. All jobs of a multirun are composed and checked before the first one runs.
"""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from torchlens.base.errors import TorchLensError
from torchlens.runner import arguments
from torchlens.runner.progress import mute

if TYPE_CHECKING:
    from omegaconf import DictConfig

    from torchlens.runner.arguments import Arguments
    from torchlens.runner.job import Job
    from torchlens.runner.sweep import Ending, Planned

OK, FAILED, REFUSED, INTERRUPTED = 0, 1, 2, 130
TRACEBACKS = "HYDRA_FULL_ERROR"
_COMPLETION = "--shell-completion"
# A disk that is full, or takes no more of this user.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        code = _main(words)
        sys.stdout.flush()
    except TorchLensError as exc:
        return _refuse(exc)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader of our output went away, as in `| head`
        mute()
        return OK
    except OSError as exc:
        if exc.errno not in _FULL:
            raise
        from torchlens.runner.job import unwritable

        _refuse(unwritable(exc))
        mute()
        return FAILED
    return code


def _main(words: Sequence[str]) -> int:
    found = arguments.read(words)
    if found.help:
        from torchlens.runner import help as help_text

        print(help_text.text(found.config_dirs))
        return OK
    if found.version:
        import torchlens

        print(f"torchlens {torchlens.__version__}")
        return OK
    # `python -m` has the working directory on the path, the console script has not; models of the user live there.
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    return _run(found) if found.hydra in ([], ["--cfg", "job"]) else _hydra_only(found)


def _refuse(exc: TorchLensError) -> int:
    if os.environ.get(TRACEBACKS) == "1":
        traceback.print_exception(exc)
    else:
        _say(exc)
    return REFUSED


# -- running
def _run(found: Arguments) -> int:
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    from torchlens.runner.errors import RECOGNISED, translate
    from torchlens.settings import catalog

    _prepare(found)
    GlobalHydra.instance().clear()
    with initialize_config_dir(str(catalog.packaged()), job_name="torchlens", version_base="1.3"):
        try:
            texts = _jobs(found)
            configs = [_compose(found.config_name, words) for words in texts]
            if found.hydra:
                print("\n---\n".join(_config_text(cfg) for cfg in configs))
                return OK
            jobs = [_read(cfg) for cfg in configs]
        except RECOGNISED as exc:
            raise translate(exc) from exc
        if any(job.explain for job in jobs):
            print("\n\n".join(_explain(job, several=len(jobs) > 1) for job in jobs))
            return OK
        for job in jobs:
            _check_job(job)
        return _act(found, jobs, texts, GlobalHydra.instance().hydra)


def _prepare(found: Arguments) -> None:
    from torchlens.runner import groups, schema

    groups.install(found.config_dirs)
    schema.register()


def _jobs(found: Arguments) -> list[list[str]]:
    """The overrides of every job: one, or the product of all lists of values."""
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.override_parser.overrides_parser import OverridesParser

    from torchlens.runner.errors import check_choices
    from torchlens.runner.levels import with_named_levels

    parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
    overrides = parser.parse_overrides(found.overrides)
    check_choices(overrides, found.overrides, found.config_dirs, found.multirun)
    found.overrides = with_named_levels(overrides, found.overrides)
    overrides = parser.parse_overrides(found.overrides)
    if not found.multirun:
        return [found.overrides]
    return [job for batch in BasicSweeper.split_arguments(overrides, None) for job in batch]


def _compose(config_name: str, texts: list[str]) -> DictConfig:
    from hydra import compose
    from hydra.core.hydra_config import HydraConfig

    cfg = compose(config_name, overrides=texts, return_hydra_config=True)
    HydraConfig.instance().set_config(cfg)
    return cfg


def _read(cfg: DictConfig) -> Job:
    from torchlens.runner.job import read_job

    return read_job(cfg, cfg.hydra)


def _config_text(cfg: DictConfig) -> str:
    """The configuration as YAML, without the keys that nothing sets."""
    from omegaconf import OmegaConf

    from torchlens.runner.job import present

    keys = {str(key) for key in cfg if key != "hydra"}
    return OmegaConf.to_yaml({key: value for key, value in present(cfg).items() if key in keys}).rstrip()


def _check_job(job: Job) -> None:
    from torchlens.runner.job import check_out
    from torchlens.runner.spec import check_present

    if not job.check:
        check_out(job.out)
    for figure in job.figures:
        if figure.model is not None:
            check_present(figure.model)


def _explain(job: Job, *, several: bool) -> str:
    from torchlens.settled import settings_text

    parts = [f"job: {' '.join(job.overrides)}"] if several else []
    for figure in job.figures:
        chosen = " ".join(f"{group}={name}" for group, name in figure.chosen.items())
        parts.append(f"[{figure.name}] {chosen} -> {', '.join(figure.files)}\n{settings_text(figure.request)}")
    return "\n\n".join(parts)


# -- drawing, or comparing
def _act(found: Arguments, jobs: list[Job], texts: list[list[str]], hydra: Any) -> int:
    """Draw the jobs or check their figures, tell how each ended, and write the page over them."""
    from hydra.types import RunMode

    from torchlens.runner import sweep

    cfg = hydra.compose_config(
        found.config_name,
        list(found.overrides),
        with_log_configuration=True,
        run_mode=RunMode.MULTIRUN if found.multirun else RunMode.RUN,
    )
    keys = sweep.swept_keys(texts) if found.multirun else []
    planned = sweep.plan(jobs, texts, keys, cfg, multirun=found.multirun)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # told here, in one line
        for text in sweep.unused_axes(planned, keys):
            print(f"torchlens: {text}", file=sys.stderr)
    if any(job.check for job in jobs):
        return _check(planned)
    launched = sweep.to_run(planned)
    sweep.forget(launched)
    problems: dict[str, str] = {}
    try:
        if found.multirun and sweep.launcher_name(cfg.hydra) != sweep.BASIC:
            problems |= sweep.launch(launched, _launcher(cfg, hydra), cfg.hydra)
        else:
            _run_here(found, launched, problems)
    except BaseException as exc:  # what is done is told all the same
        interrupted = isinstance(exc, KeyboardInterrupt)
        refused = isinstance(exc, TorchLensError)  # a launcher that can write no more
        if refused:
            _say(exc)
        _tell(planned, sweep.endings(planned, launched, problems, interrupted=interrupted), keys, always=interrupted)
        if not refused:
            raise
        return FAILED
    endings = sweep.endings(planned, launched, problems)
    if found.multirun and sweep.launcher_name(cfg.hydra).startswith("submitit"):
        _tell_paths(launched, endings)
    return _tell(planned, endings, keys)


def _tell_paths(launched: Sequence[Planned], endings: Sequence[Ending]) -> None:
    """The files written by jobs whose own output went into log files."""
    from torchlens.runner import progress

    folders = {item.name: item.folder for item in launched}
    for ending in endings:
        if ending.status == "ok":
            for file in ending.files:
                progress.say(progress.shown(folders[ending.folder] / file))


def _run_here(found: Arguments, launched: Sequence[Planned], problems: dict[str, str]) -> None:
    """Run jobs one after the other in this process, without Hydra: all there is to know is composed.

    problems: gets, by job, what kept its manifest from being written.
    """
    from torchlens.runner.execute import execute

    if not found.multirun and any(text.lstrip("+").startswith("hydra/launcher=") for text in found.overrides):
        print("torchlens: note: hydra/launcher has no effect without --multirun", file=sys.stderr)
    for item in launched:
        try:
            execute(item.job, item.folder)
        except TorchLensError as exc:  # a disk that is full, or a folder that went away: the manifest cannot be kept
            problems[item.name] = _say(exc)


def _launcher(cfg: DictConfig, hydra: Any) -> Any:
    from hydra._internal.callbacks import Callbacks
    from hydra.core.plugins import Plugins
    from hydra.types import HydraContext

    context = HydraContext(config_loader=hydra.config_loader, callbacks=Callbacks(cfg))
    return Plugins.instance().instantiate_launcher(hydra_context=context, task_function=run_job, config=cfg)


def _tell(planned: Sequence[Planned], endings: Sequence[Ending], keys: Sequence[str], *, always: bool = False) -> int:
    """One line per figure where there are several, and the page over them. Returns the exit code.

    always: tell of a single figure too.
    """
    from torchlens.runner import index_page, progress, sweep

    code = OK if all(ending.status in ("ok", "kept") for ending in endings) else FAILED
    if len(endings) > 1 or always:
        sweep.report(endings)
    if len(endings) > 1:
        try:
            page = index_page.write(planned, endings, keys)
        except TorchLensError as exc:  # the disk is full; the figures are there
            _say(exc)
            return FAILED
        if page is not None:
            progress.say(progress.shown(page))
    return code


def _say(exc: BaseException) -> str:
    """Print an error as one line, and return it."""
    text = " ".join(str(exc).split())
    print(f"torchlens: {text}", file=sys.stderr)
    return text


def _check(planned: Sequence[Planned]) -> int:
    from torchlens.runner import check

    for item in planned:
        check.require_manifest(item.folder)
    drifts = [
        check.Drift(f"{item.name}/{drift.file}" if item.name else drift.file, drift.what)
        for item in planned
        for drift in check.check_job(item.job, item.folder)
    ]
    check.report(drifts, sum(len(item.job.figures) for item in planned))
    return FAILED if drifts else OK


def run_job(cfg: DictConfig) -> str:
    """Run one composed job, in whichever process Hydra starts it.

    Returns what kept its manifest from being written, empty if nothing did; everything else is in the manifest.
    """
    import signal
    from multiprocessing import current_process

    from hydra.core.hydra_config import HydraConfig

    from torchlens.runner import schema
    from torchlens.runner.execute import execute
    from torchlens.runner.job import read_job

    schema.register()
    if current_process().name != "MainProcess":  # of a pool: who started it tells of an interruption
        signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    hydra = cast("DictConfig", HydraConfig.get())
    job = read_job(cfg, hydra)
    try:
        execute(job, Path(hydra.runtime.output_dir))
    except (TorchLensError, OSError) as exc:
        return _say(exc)
    return ""


def _hydra_only(found: Arguments) -> int:
    """Answer --cfg, --info and the like with Hydra's own command line."""
    import hydra

    from torchlens.runner.errors import RECOGNISED, translate
    from torchlens.settings import catalog

    if _COMPLETION in found.hydra and (line := os.environ.get("COMP_LINE")):  # the command that is being written
        with suppress(TorchLensError):
            found.config_dirs += filter(os.path.isdir, arguments.read(line.split()[1:]).config_dirs)
    _prepare(found)
    before, full = sys.argv, os.environ.get(TRACEBACKS)
    sys.argv = [before[0], *found.hydra, *(["--multirun"] if found.multirun else []), "--", *found.overrides]
    os.environ[TRACEBACKS] = "1"  # Hydra then raises instead of printing
    try:
        hydra.main(config_path=str(catalog.packaged()), config_name=found.config_name, version_base="1.3")(run_job)()
    except RECOGNISED as exc:
        raise translate(exc) from exc
    except SystemExit as exc:
        return exc.code if isinstance(exc.code, int) else OK
    finally:
        sys.argv = before
        os.environ.pop(TRACEBACKS)
        os.environ.update({} if full is None else {TRACEBACKS: full})
    return OK
