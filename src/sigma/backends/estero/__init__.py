"""Estero among the backends of pySigma."""

from estero.queries.sigma_backend import EsteroBackend

__all__ = ["EsteroBackend"]

backends = {"estero": EsteroBackend}
