"""Which result of the protocol is which conclusion?"""

from __future__ import annotations

from ci.interop.protocol import runner_pb2 as pb
from ci.models import Conclusion

_CONCLUSIONS: dict[pb.Result, Conclusion] = {
    pb.RESULT_SUCCESS: Conclusion.SUCCESS,
    pb.RESULT_FAILURE: Conclusion.FAILURE,
    pb.RESULT_CANCELLED: Conclusion.CANCELLED,
    pb.RESULT_SKIPPED: Conclusion.SKIPPED,
}
_RESULTS = {str(conclusion): result for result, conclusion in _CONCLUSIONS.items()}


def conclusion_of(result: pb.Result) -> Conclusion | None:
    """None while there is no end, and for a number that this protocol does not know."""
    return _CONCLUSIONS.get(result)


def result_of(conclusion: str | None) -> pb.Result:
    return _RESULTS.get(str(conclusion), pb.RESULT_UNSPECIFIED) if conclusion else pb.RESULT_UNSPECIFIED
