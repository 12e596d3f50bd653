"""Process metrics: state and evidence of metrics that belong to no region."""
