"""`python -m torchlens` is the same command as `python -m torchlens.run`."""

from torchlens.runner.main import main

if __name__ == "__main__":
    raise SystemExit(main())
