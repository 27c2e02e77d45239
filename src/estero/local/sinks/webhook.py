"""A webhook: one POST per row, repeated until it is accepted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa

from estero.addresses import Address
from estero.answers.answer_ids import ID
from estero.errors import DataError, require
from estero.local.rows import json_lines
from estero.local.sinks.sink import Sink

TRIES: Final = 8
"""The number of attempts to send a row before the stream fails, with pauses of at most 25 seconds in all."""
PAUSE: float = 0.2
"""The approximate seconds before the second attempt; each pause is twice as long as the previous one."""
_LONGEST: Final = 15.0
_TIMEOUT: Final = 10.0
_AGAIN: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""The status codes of servers that may accept the same request later."""


class Webhook(Sink):
    """Sends rows one by one as JSON, with their id in the header ``Idempotency-Key``.

    Requests to a server that is busy or unreachable are repeated after increasing pauses; any other refusal
    is an error. After a failure, rows may be sent again with the same id.
    """

    def __init__(self, address: Address) -> None:
        super().__init__()
        require("webhook", "a webhook")
        import urllib3

        self._address = address
        self._pool = urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(_TIMEOUT))

    def open(self, stream: str, schema: pa.Schema) -> None:
        """Does nothing."""

    def write(self, number: int, rows: Iterator[pa.RecordBatch]) -> int:
        """Sends the rows of a batch; raises `DataError` if one is not accepted."""
        written = 0
        for batch in rows:
            ids = batch.column(ID).to_pylist() if ID in batch.schema.names else [None] * batch.num_rows
            for line, key in zip(json_lines(batch), ids, strict=True):
                self._send(line, key)
                self.reached("posted")
                written += 1
        self.delivered = number
        return written

    def close(self) -> None:
        """Closes the connections."""
        self._pool.clear()

    def _send(self, line: bytes, key: str | None) -> None:
        import tenacity
        import urllib3

        flag: Any = self.stopping  # it has the methods of an event
        attempts = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(TRIES) | tenacity.stop_when_event_set(flag),
            wait=tenacity.wait_random_exponential(multiplier=PAUSE, max=_LONGEST),
            retry=tenacity.retry_if_exception_type(urllib3.exceptions.HTTPError)
            | tenacity.retry_if_result(lambda status: status in _AGAIN),
            sleep=tenacity.sleep_using_event(flag),
            retry_error_callback=_last,
        )
        try:
            status = attempts(self._post, line, key)
        except urllib3.exceptions.HTTPError as error:
            raise DataError(
                f"the webhook does not answer: {type(error).__name__}", file=str(self._address)
            ) from error
        if not 200 <= status < 300:
            raise DataError(f"the webhook answers with the status {status}", file=str(self._address))

    def _post(self, line: bytes, key: str | None) -> int:
        headers = {"Content-Type": "application/json"} | ({} if key is None else {"Idempotency-Key": key})
        answer = self._pool.request("POST", self._address.place, body=line, headers=headers, redirect=False)
        return int(answer.status)


def _last(state: Any) -> Any:
    """The outcome of the last attempt."""
    return state.outcome.result()
