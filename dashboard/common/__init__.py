"""What stands under every stage: clock, errors, job slots, the one outbound client."""
