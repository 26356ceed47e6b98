"""Every refusal is one coded line that names the nearest right word; nothing runs and nothing is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

# Command line, code, and words of the line.
REFUSALS = [
    ("view=speeed", "config_name_unknown", "no view is named 'speeed'. Allowed: "),
    ("view=speeed", "config_name_unknown", "Fix: perhaps you meant 'speed'"),
    ("theme=papr", "config_name_unknown", "perhaps you meant 'paper'"),
    ("model=resnet8", "config_name_unknown", "perhaps you meant 'resnet18'"),
    ("figures=toor", "config_name_unknown", "no set of figures is named 'toor'"),
    ("encoding=flop", "config_name_unknown", "perhaps you meant 'flops'"),
    ("input=video", "config_name_unknown", "Allowed: auto, image, kwargs, shape, tensor, text"),
    ("output=docz", "config_name_unknown", "perhaps you meant 'docs'"),
    ("view=null", "config_invalid", "view=null chooses nothing. Allowed: "),
    ("view=[speed,plain]", "config_name_unknown", "no view is named"),
    ("hydra/launcher=jolib", "config_name_unknown", "Allowed: basic"),
    ("--config-name=nope", "config_name_unknown", "nope"),
    # collapse
    ("collapse=most", "collapse_mode_invalid", "'most'"),
    ("draw.collapse=most", "collapse_mode_invalid", "a number from 0 to 1"),
    ("draw.collapse=1.5", "collapse_level_invalid", "Allowed: none, auto, max, a number from 0 to 1"),
    ("draw.fold_repeats=maybe", "fold_repeats_invalid", "'maybe'"),
    ("draw.collapse_rules=[{clas:Block,do:fold}]", "collapse_rules_invalid", "perhaps you meant 'class'"),
    ("draw.collapse_rules=[{op:relu,do:fold}]", "collapse_rules_invalid", "collapse_rules[0].do=fold is not for an op"),
    ("draw.collapse_rules={class:Block,do:fold}", "collapse_rules_invalid", "is no list of rules"),
    # unknown keys
    ("views=speed", "config_invalid", "unknown setting 'views'"),
    ("views=speed", "config_invalid", "perhaps you meant 'view'"),
    ("draw.colour_by=flops", "config_invalid", "unknown setting 'draw.colour_by'"),
    ("+draw.colour_by=flops", "config_invalid", "draw.colour_by is not a known key"),
    ("draw.colour_by=flops", "config_invalid", "perhaps you meant 'color_by'"),
    ("theme.page.backgrund=ivory", "config_invalid", "perhaps you meant 'background'"),
    ("theme.roles.inputs.fill=red", "config_invalid", "perhaps you meant 'input'"),
    ("view.neds=[timings]", "config_invalid", "perhaps you meant 'needs'"),
    ("input.shap=[1]", "config_invalid", "perhaps you meant 'shape'"),
    ("model.sed=1", "config_invalid", "perhaps you meant 'seed'"),
    ("model.factory.bogus=3", "config_invalid", "write +model.factory.bogus=..."),
    ("format=[svg]", "config_invalid", "perhaps you meant 'formats'"),
    ("figures.b.view=speed", "config_invalid", "the chosen set of figures has no 'b'"),
    ("+figures.b.view=speed", "config_invalid", "figures/NAME.yaml in a --config-dir"),
    ("figures=tour figures.speed.veiw=plain", "config_invalid", "perhaps you meant 'view'"),
    ("~figures.nope", "config_invalid", "'figures.nope' does not exist"),
    ("+model.factory._target_=x", "config_invalid", "already"),
    # a value where a group belongs
    ("draw=3", "config_invalid", "draw is a group of settings and takes no value of its own"),
    ("capture=null", "config_invalid", "capture is a group of settings"),
    ("view.draw=[a]", "config_invalid", "write view.draw.NAME=VALUE, or leave it out"),
    ("theme.roles.input=red", "config_invalid", "theme.roles.input is a group of settings"),
    ("figures.main=3", "config_invalid", "figures.main is a group of settings"),
    ("figures.main.draw=null", "config_invalid", "figures.main.draw is a group of settings"),
    ("+figures.b=3", "config_invalid", "the chosen set of figures has no 'b'"),
    ("depth=2", "config_invalid", "options of the drawing are written draw.depth=VALUE"),
    ("draw.graph_attrs.size=3", "config_invalid", "write +draw.graph_attrs.size=VALUE"),
    ("model=mlp input=image", "config_invalid", "a picture needs [N, C, H, W]"),
    ("input=text", "config_invalid", "input=text needs input.text="),
    ("input=kwargs", "config_invalid", "write input.kwargs.NAME=VALUE"),
    ("input.path=nix.png", "input_file_unreadable", "input.path='nix.png' is not a file"),
    ("model.checkpoint=ck.pt", "model_checkpoint_invalid", "checkpoint='ck.pt' is not a file"),
    ("model.checkpoint=ck.txt", "config_invalid", "checkpoint is not the name of a file of weights"),
    ("+model.tokenizer._target_=os.system", "config_target_untrusted", "tokenizer._target_ calls 'os.system'"),
    ("input=tensor input.path=nix.pt", "input_file_unreadable", "input.path='nix.pt' is not a file"),
    ("trust=[nix.*] model.factory._target_=nix.Net", "model_package_missing", "needs the package 'nix'"),
    # values
    ("draw.dpi=abc", "draw_dpi_invalid", "dpi='abc' is not allowed"),
    ("draw.depth=0", "draw_depth_invalid", "a whole number of at least 1"),
    ("draw.depth=null", "draw_depth_invalid", "depth=None"),
    ("draw.direction=up", "visualization_direction_invalid", "Allowed: bottomup, topdown, leftright, rightleft"),
    ("draw.color_by=off", "encoding_source_invalid", "Allowed: time, bytes, flops, magnitude,"),
    ("draw.node_spec_fn=mine", "draw_node_spec_fn_invalid", "a function (in YAML a _target_)"),
    ("draw.rolled=1", "draw_rolled_invalid", "Allowed: true, false"),
    ("draw.color_scale=rank", "scale_requires_color_by", "pass color_by= too"),
    ("draw.engine=dot", "draw_engine_invalid", "Allowed: embedded, system, null"),
    ("draw.pdf_font=no.ttf formats=[pdf]", "pdf_font_invalid", "no.ttf"),
    ("theme.page.background=nocolor", "config_invalid", "page.background is not a colour but 'nocolor'"),
    ("figures=tour figures.speed.draw.depth=0", "draw_depth_invalid", "figures.speed: draw.depth=0"),
    ("figures=tour figures.speed.theme=papr", "visualization_theme_invalid", "perhaps you meant 'paper'"),
    ("figures=tour figures.speed.path=plain", "figure_path_conflict", "figures.speed.path=NAME"),
    ("formats=[svg,pfd]", "file_format_invalid", "'pfd' is not a format"),
    ("formats=[]", "config_invalid", "formats=[] is not a list of formats"),
    ("threads=two", "config_invalid", "threads='two'"),
    ("explain=maybe", "config_invalid", "explain='maybe' is neither true nor false"),
    ("resume=true", "config_invalid", "add out=DIR, the folder of that run"),
    ("resume=1 out=o", "config_invalid", "resume=1 is neither true nor false"),
    ("capture.timings=thawed", "config_invalid", "Allowed: measured, frozen"),
    ("capture.timing=frozen", "config_invalid", "perhaps you meant 'timings'"),
    ("check=true out=nowhere", "manifest_missing", "nowhere holds no manifest"),
    ("trust=3", "config_invalid", "trust=3 is not a list of names"),
    # models and inputs
    ("model.factory._target_=os.system", "config_target_untrusted", "add 'trust=[os.*]' to the command"),
    ("model.mode=test", "config_invalid", "Allowed: eval, train"),
    ("input=shape", "config_invalid", "input=shape needs input.shape="),
    ("input=tensor", "config_invalid", "input=tensor needs input.path="),
    ("input.shape=[0]", "config_invalid", "positive whole numbers"),
    # the command line itself
    ("bogus", "config_invalid", "settings are written key=value"),
    ("=3", "config_invalid", "cannot read '=3'"),
    ("a=[1", "config_invalid", "cannot read 'a=[1'"),
    ("view=plain,speed", "config_invalid", "add --multirun (-m)"),
    ("draw.caption=a,b", "config_invalid", "put a text with commas in quotes"),
    ("--bogus", "config_invalid", "unknown flag '--bogus'"),
    ("--config-dir nowhere", "config_invalid", "--config-dir names a folder that does not exist"),
    ("-m view=speed,nope", "config_name_unknown", "no view is named 'nope'"),
    ("-m theme=dark,paper,dark", "sweep_jobs_equal", "theme=dark is listed 2 times"),
    ("-m draw.depth=1,0", "draw_depth_invalid", "depth=0"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "words"), REFUSALS)
def test_one_line_and_exit_code_2(line: str, code: str, words: str, run: Any) -> None:
    result = run(*line.split(" "))
    assert result.code == 2
    assert result.out == ""
    (text,) = result.err.splitlines()
    assert text.startswith(f"torchlens: [{code}] ")
    assert words in text
    assert list(Path.cwd().iterdir()) == []


def _folder(tmp_path: Path, name: str, text: str) -> str:
    path = tmp_path / "conf" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(tmp_path / "conf")


@pytest.mark.parametrize(
    ("name", "text", "choice", "words"),
    [
        ("views/x.yaml", "question: q\ndraw: {colour_by: time}\n", "view=x", "draw.colour_by"),
        ("views/x.yaml", "question: q\nsettings: {}\n", "view=x", "views/x.yaml: settings is not a known key"),
        ("views/x.yaml", "draw: {depth: 1}\n", "view=x", "x.yaml: question is missing"),
        ("views/x.yaml", "question: q\ndraw: {depth: 0}\n", "view=x", "x.yaml: draw.depth=0"),
        ("views/x.yaml", "question: q\ndraw: {dpi: abc}\n", "view=x", "x.yaml: draw.dpi='abc'"),
        ("views/x.yaml", "question: q\ndraw: 3\n", "view=x", "x.yaml: draw is not a mapping but 3"),
        ("views/x.yaml", "question: q\nneeds: [tea]\n", "view=x", "x.yaml: needs does not know 'tea'"),
        ("view/x.yaml", "question: [q\n", "view=x", "x.yaml:2:1: not valid YAML"),
        ("view/x.yaml", "question: q\n\tdraw: {}\n", "view=x", "x.yaml:2:1: not valid YAML"),
        ("view/x.yaml", "question: a\nquestion: b\n", "view=x", "found duplicate key question"),
        ("views/x.yaml", "question: q\nextends: nope\n", "view=x", "x.yaml: extends names no view: 'nope'"),
        ("themes/x.yaml", "page: {background: nocolor}\n", "theme=x", "x.yaml: page.background is not a colour"),
        ("themes/x.yaml", "roles: {inputs: {}}\n", "theme=x", "inputs"),
        ("models/x.yaml", "input: {shape: [1]}\n", "model=x", "x.yaml: factory is missing"),
        ("models/x.yaml", "factory: {_target_: torch.nn.ReLU}\n", "model=x", "nothing says what goes into the model"),
        ("models/x.yaml", "factory: {_target_: mynet.Net}\ninput: {shape: [1]}\n", "model=x", "'trust=[mynet.*]'"),
        ("encodings/x.yaml", "draw: {color_by: tea}\n", "encoding=x", "x.yaml: draw.color_by='tea'"),
        ("figures/x.yaml", "a: {view: nope}\n", "figures=x", "no view is named 'nope'"),
        ("figures/x.yaml", "{}\n", "figures=x", "figures names no figure"),
        ("output/x.yaml", "# @package _global_\nout: o\ntrust: [os.*]\n", "output=x", "trust is set by a file"),
    ],
)
def test_mistakes_in_a_users_file_name_the_file_or_key(
    name: str, text: str, choice: str, words: str, run: Any, tmp_path: Path
) -> None:
    result = run("--config-dir", _folder(tmp_path, name, text), choice)
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert words in line
    assert list(Path.cwd().iterdir()) == []


def test_a_folder_that_cannot_be_made_is_refused(run: Any) -> None:
    (Path.cwd() / "taken").write_text("")
    result = run("out=taken/below", "formats=[dot]")
    assert result.code == 2
    assert result.err.startswith("torchlens: [output_path_invalid] cannot write to")
    assert len(result.err.splitlines()) == 1


def test_a_package_that_is_missing_is_named_with_its_install_command(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib import util

    real = util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "torchvision" else real(name))
    result = run("model=resnet18")
    assert result.code == 2
    (line,) = result.err.splitlines()
    assert "needs the package 'torchvision', which is not installed. Fix: pip install torchvision" in line


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (
            ("model.factory._target_=torch.nn.Linearr",),
            "nothing is called 'torch.nn.Linearr'. Fix: perhaps you meant 't",
        ),
        (
            ("+model.factory.bogus=3",),
            "cannot build model 'demo (changed)' with torchlens.examples.demo.Demo: TypeError",
        ),
        (("model=mlp", "model.checkpoint=w.pt"), "[model_checkpoint_invalid]"),
    ],
)
def test_what_only_building_the_model_tells_fails_its_figure(words: tuple[str, ...], text: str, run: Any) -> None:
    Path("w.pt").write_text("no weights")
    result = run(*words, "out=o", "formats=[dot]")
    assert result.code == 1
    assert result.out == ""
    (line,) = (line for line in result.err.splitlines() if not line.startswith("["))
    assert line.startswith("figure 'main' failed: ")
    assert text in line


def test_a_traceback_only_for_those_who_ask(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYDRA_FULL_ERROR", "1")
    result = run("view=speeed")
    assert result.code == 2
    assert "Traceback" in result.err
