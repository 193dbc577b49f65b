// Carries precompiled headers (cmake/Farkv.cmake).
