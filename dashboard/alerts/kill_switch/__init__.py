"""The switch: a version is frozen or run eager on a few instances, then on more, for a while, and
goes back by itself."""
