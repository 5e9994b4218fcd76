"""The compiler's intermediate form (SSA): its nodes, printer and verifier."""
