"""What a filter is: values, constraints, operands, filters; how they are written, printed, explained."""
