"""What is on the page: a trace and a request become nodes, arrows and frames, and nothing of how they look."""

from torchlens.plan.pipeline import make_plan as make_plan
