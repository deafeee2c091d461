# SPDX-License-Identifier: GPL-2.0-only
"""The host side of the kernel builds: cache, source, series, configuration, build."""
