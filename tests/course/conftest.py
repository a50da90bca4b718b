"""The fixture is a course of its own: its tests are for the functions of learners, and are run by the engine."""

collect_ignore = ["fixture"]
