// Carries the precompiled headers of all tests (cmake/Farkv.cmake).
