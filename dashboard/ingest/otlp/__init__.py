"""OpenTelemetry metrics in place of reports: `POST /api/v1/otlp/v1/metrics` takes the regions that
they hold."""
