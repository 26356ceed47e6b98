"""Entry point of `python -m torchlens.run`; everything else is in `torchlens.runner`."""

from torchlens.runner.main import main

if __name__ == "__main__":
    raise SystemExit(main())
