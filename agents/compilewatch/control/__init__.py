"""Control: commands of the dashboard and the kill switch."""
