# SPDX-License-Identifier: MIT
growth = co2["ppm"].diff().groupby(co2.index // 10 * 10).mean().round(2)
for decade, ppm in growth.items():
    print(f"{decade}s  {ppm:5.2f} ppm a year  {'#' * int(ppm * 10)}")
