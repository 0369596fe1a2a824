"""What tests and benches share: stand-ins for servers and hubs, made-up runs, hostile programs."""
