# find_package(hpqf) for users: written when the install rules arrive with the package files.
