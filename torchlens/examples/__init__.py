"""Small models for first drawings, documentation and tests. They import torch only and know nothing of the recorder."""
