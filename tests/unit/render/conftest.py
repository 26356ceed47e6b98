"""Documents that the tests of this folder render: an ordinary one, and one whose labels try to break out."""

from __future__ import annotations

import pytest

from torchlens.render.graphviz import EMBEDDED

DOCUMENT = """
digraph "Demo \\"net\\" <&>" {
  graph [id="figure" rankdir=BT bgcolor="#fffff0" fontname="Helvetica" labelloc=t labeljust=l
    label=<<TABLE BORDER="0"><TR><TD ALIGN="LEFT"><B>Demo</B></TD></TR><TR><TD ALIGN="LEFT">12 ops</TD></TR></TABLE>>]
  node [fontname="Helvetica" style=filled fillcolor="#ffffff"]
  edge [fontname="Helvetica" fontsize=8]
  subgraph cluster_a {
    id="cluster:a:1" class="module" label=<<B>@a</B>> style="filled,solid" fillcolor="#fffff0" penwidth=5
    n1 [id="conv2d_1_1" class="op" shape=box fillcolor="#d9d9d9:#b0b0b0" gradangle=0 tooltip="first &amp; <last>"
        label=<<TABLE BORDER="0"><TR><TD><B>conv2d_1_1</B></TD></TR><TR><TD><I>(2, 8), 64 B</I></TD></TR></TABLE>>]
    n2 [id="relu_1_2:2" label="relu_1_2:2"]
  }
  n3 [id="buffer:x:1" shape=cylinder style="filled,dashed" label="buffer"]
  n4 [id="box" shape=box3d label="box" fillcolor="#ff000080" fontname="Courier"]
  n5 [id="wide" shape=box style=striped fillcolor="#ffb000;0.5:#ffffff;0.5" label="striped" fontname="Times"]
  n6 [id="twin" shape=box fillcolor="#d9d9d9:#b0b0b0" gradangle=0 label="twin"]
  n1 -> n2 [id="edge:conv2d_1_1->relu_1_2:2:0" label=" x2" headlabel="arg 0"]
  n2 -> n3 [style=dotted]
  n3 -> n4
  n2 -> n5 -> n6
}
"""

# What an honest writer makes of labels with markup, quotes, brackets, backslashes, newlines and control characters.
HOSTILE = """
digraph "</svg><script>" {
  n1 [id="a" label=<<TABLE BORDER="0"><TR><TD><B>&lt;b&gt;&amp;amp;&quot;&#91;x&#93; \\\\N \\\\l</B></TD></TR>
      <TR><TD>tab&#xFFFD;null line<BR/>two 漢字 Δ → × … é ﬁ 🙂</TD></TR></TABLE>> tooltip="]]> --> \\"q\\" \\\\N"]
  n2 [id="]]><x" label="--> </text> <script>alert(1)</script> & \\\\ \\"quoted\\""]
  n1 -> n2 [label="%s %d {0} ${x}"]
}
"""


@pytest.fixture(scope="session")
def document() -> str:
    """Most of what a figure holds, as DOT."""
    return DOCUMENT


@pytest.fixture(scope="session")
def hostile() -> str:
    """Labels that would break a careless writer, as DOT."""
    return HOSTILE


@pytest.fixture(scope="session")
def raw_svg(document: str) -> bytes:
    """What the embedded engine makes of the document."""
    return EMBEDDED.run(document, "svg")


@pytest.fixture(scope="session")
def raw_hostile(hostile: str) -> bytes:
    """What the embedded engine makes of the hostile labels."""
    return EMBEDDED.run(hostile, "svg")
