# SPDX-License-Identifier: MIT
growth = co2["ppm"].diff().dropna()
growth = growth.groupby(growth.index // 10 * 10).mean()
for decade, ppm in growth.items():
    print(f"{decade}s  {ppm:5.2f} ppm a year  {'#' * int(ppm * 10)}")
