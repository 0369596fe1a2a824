"""A Ray cluster of several nodes on loopback, by Ray's own utility for that, for as long as stdin is open.

    python tests/support/ray_nodes.py 3 [CPUS]   prints the address; then, by line that it reads: `kill` ends a node
                                                 as a machine ends that loses its power, `add` starts one

Needs a Python that has Ray. Left out: a dashboard, and everything that listens elsewhere.
"""

from __future__ import annotations

import os
import sys

LOOPBACK = "127.0.0.1"


def main() -> None:
    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}
    from ray.cluster_utils import Cluster

    how = {
        "num_cpus": int(sys.argv[2]) if len(sys.argv) > 2 else 1,
        "node_ip_address": LOOPBACK,
        "object_store_memory": 100 << 20,
        "include_dashboard": False,
    }
    cluster = Cluster(initialize_head=True, head_node_args=how)
    nodes = [cluster.add_node(**how) for _ in range(int(sys.argv[1]) - 1)]
    cluster.wait_for_nodes()
    print(cluster.address, flush=True)
    for line in sys.stdin:
        if line.strip() == "kill":
            cluster.remove_node(nodes.pop(), allow_graceful=False)
        elif line.strip() == "add":
            nodes.append(cluster.add_node(**how))
        print("done", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
