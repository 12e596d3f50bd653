"""Help pages: the documents of the product, rendered and searched."""
