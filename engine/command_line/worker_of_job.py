"""Program that runs the workers of a Slurm job on a cluster node, with the arguments that `dask_jobqueue` writes into job scripts."""

import argparse
from pathlib import Path

from proteoscope.engine.execution import cluster

__all__ = ["main"]


def main() -> None:
    """Run the workers of the job until the scheduler ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--nthreads", type=int)
    for part in ("ca-file", "cert", "key"):
        parser.add_argument(f"--tls-{part}", type=Path, required=True)
    options, _ = parser.parse_known_args()  # ignore other arguments: names, and memory, which Slurm limits

    from distributed import Security  # optional: installed with the extra "workers"

    files = {"tls_worker_cert": str(options.tls_cert), "tls_worker_key": str(options.tls_key)}
    security = Security(require_encryption=True, tls_ca_file=str(options.tls_ca_file), **files)
    cluster.serving.serve_workers(options.address, security, count=options.count, threads=options.nthreads, device=options.device)


if __name__ == "__main__":
    main()
