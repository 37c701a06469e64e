"""What the subcommands do that are no part of the pipeline: serve, record, corpus, conformance.

Each is imported by name when it is asked for (``simulator.cli.COMMANDS``): a web server and the providers' SDKs take seconds to import.
"""
