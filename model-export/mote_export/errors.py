"""The one error of this package: what is wrong, and what to do next."""


class ExportError(Exception):
    """A refusal that a person can act on.

    `kind` is one of `input` (the checkpoint is broken or missing), `unsupported` (it is sound, but asks for
    something a bundle cannot hold), `fetch` (a download failed), `output` (the bundle cannot be written) and
    `mismatch` (a check failed).
    """

    def __init__(self, kind: str, message: str, hint: str):
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}"


def bad_input(message: str, hint: str) -> ExportError:
    """The checkpoint is broken, cut short or missing."""
    return ExportError("input", message, hint)


def unsupported(message: str, hint: str) -> ExportError:
    """The checkpoint is sound, but a bundle cannot hold it."""
    return ExportError("unsupported", message, hint)
