"""The backend of pySigma for queries in CEQL, which ``sigma convert -t estero`` finds by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from sigma.conversion.base import TextQueryBackend
from sigma.conversion.state import ConversionState
from sigma.correlations import SigmaCorrelationRule
from sigma.exceptions import SigmaConversionError, SigmaFeatureNotSupportedByBackendError
from sigma.rule import SigmaRule

from estero.errors import QueryError
from estero.language.sigma.correlations import correlation_of_rule
from estero.language.sigma.fields import Fields, Mapped
from estero.language.sigma.lower import Lowering
from estero.language.sigma.read import about, condition_of
from estero.language.sigma.tree import Detection, LogSource, Some
from estero.language.sigma.windows import windows_tree
from estero.language.tree.expressions import Attribute
from estero.queries.sigma_statement import EVENT, tree_of


class EsteroBackend(TextQueryBackend):
    """A backend of pySigma that writes queries in CEQL.

    Fields have the names that pipelines give them; names with dots lead into structs. Conditions for log
    sources are up to pipelines, too. `estero.sigma` does more: it reads the kinds of columns, so that numbers
    and texts compare by their text, and knows the fields of raw exports.
    """

    name: ClassVar[str] = "Estero (CEQL)"
    identifier: ClassVar[str] = "estero"
    formats: ClassVar[dict[str, str]] = {"default": "queries in CEQL"}
    requires_pipeline: ClassVar[bool] = False
    correlation_methods: ClassVar[dict[str, str] | None] = {
        "default": "windows of a group within the timespan"
    }

    def convert_condition(self, cond: Any, state: ConversionState) -> Any:
        """The condition as a tree, which becomes text as a whole."""
        del state
        try:
            return condition_of(cond, {})
        except QueryError as error:
            raise SigmaFeatureNotSupportedByBackendError(f"{error.message} {error.hint}".strip()) from error

    def finish_query(self, rule: SigmaRule | SigmaCorrelationRule, query: Any, state: ConversionState) -> str:
        """The text of the query for a condition."""
        del rule, state
        return str(tree_of(_lowering().of(query), EVENT))

    def convert_correlation_rule(
        self,
        rule: SigmaCorrelationRule,
        output_format: str | None = None,
        method: str | None = None,
        callback: Callable[[SigmaRule | SigmaCorrelationRule, str | None, int, Any, Any], Any] | None = None,
    ) -> list[Any]:
        """The query for a correlation; the pipeline has been applied to the rules that it refers to."""

        def refused(message: str, *path: str, expected: str = "", hint: str = "") -> SigmaConversionError:
            del path
            said = "; ".join(filter(None, (message, expected and f"expected: {expected}", hint)))
            return SigmaConversionError(rule, rule.source, said)

        if method not in (None, *(self.correlation_methods or {})):
            raise refused(f"there is no method {method}")
        self.last_processing_pipeline.apply(rule)
        detections = [self._detection(reference.rule, refused) for reference in rule.referenced_rules]
        references = [reference.reference for reference in rule.referenced_rules]
        correlation = correlation_of_rule(rule, references, detections, refused)
        if correlation.is_of_whole_windows:
            raise refused("what a window must not have more of needs the name of the time: use estero.sigma")
        if any(len(set(names)) > 1 for names in correlation.keys):
            raise refused(
                "an alias that is another field in each rule is not a text of a query: use estero.sigma"
            )
        lowering = _lowering()
        tree = windows_tree(
            correlation,
            EVENT,
            [lowering.of(one.condition) for one in detections],
            [
                [lowering.attributes(field)[0].name]
                for field in dict.fromkeys(names[0] for names in correlation.keys)
            ],
            [Attribute(lowering.attributes(field)[0].name) for field in correlation.counted],
            "time",
        )
        given = output_format or self.default_format
        text: Any = str(tree)
        if callback is not None:
            text = callback(rule, output_format, 0, None, text)
        queries = [] if text is None else [self.finalize_query(rule, text, 0, ConversionState(), given)]
        rule.set_conversion_result(queries)
        return queries

    def _detection(
        self, rule: SigmaRule | SigmaCorrelationRule, refused: Callable[..., Exception]
    ) -> Detection:
        if isinstance(rule, SigmaCorrelationRule):
            raise refused("a correlation of correlations is not taken")
        conditions = tuple(
            self.convert_condition(one.parsed, ConversionState()) for one in rule.detection.parsed_condition
        )
        return Detection(
            about(rule), LogSource(), conditions[0] if len(conditions) == 1 else Some(conditions)
        )


def _lowering() -> Lowering:
    return Lowering(Fields(None, Mapped()))
