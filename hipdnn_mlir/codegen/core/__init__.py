"""What every kernel is written with: architecture, builder, lowering to objects, linking."""
