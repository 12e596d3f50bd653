"""OTLP receiver: `POST /api/v1/otlp/v1/metrics` accepts regions as OpenTelemetry metrics in place
of reports."""
