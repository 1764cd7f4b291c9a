"""How fast is it? `python -m tests.bench [name]` runs one benchmark, or all."""

import sys

from tests.bench import language, load, scaling

BENCHMARKS = {"language": language.main, "load": load.main, "scaling": scaling.main}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in BENCHMARKS]
    if unknown:
        print(f"No benchmark is called {', '.join(unknown)}. There are: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    return max(BENCHMARKS[name]() for name in names or BENCHMARKS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
