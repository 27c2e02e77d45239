"""A Spark session that has the connectors that a stream needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from estero.errors import EnvironmentProblem
from estero.spark.connectors.address import Address
from estero.spark.connectors.packages import session_settings
from estero.spark.sessions.session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_UNRESOLVED = "unresolved dependency"


def stream_session(
    addresses: Iterable[Address],
    *,
    master: str = "local[*]",
    packages: Iterable[str] = (),
    jars: Iterable[str] = (),
    config: Mapping[str, str] | None = None,
) -> SparkSession:
    """The session that runs, else one on `master` with the connectors of `addresses`.

    They are fetched from where Maven's packages are, unless `packages` or `jars` say which. `config` adds
    settings of Spark, and wins. Raises `EnvironmentProblem` where they cannot be had or Spark does not start.
    """
    from pyspark import __version__

    settings = session_settings(addresses, __version__, packages=packages, jars=jars)
    try:
        return local_session(master, config=settings | dict(config or {}))
    except EnvironmentProblem as error:
        if _UNRESOLVED not in str(error):
            raise
        wanted = settings.get("spark.jars.packages", "the packages")
        raise EnvironmentProblem(
            f"Spark cannot fetch {wanted}: name others with --packages, or, where there is no network, "
            "files with --jars."
        ) from error
