# SPDX-License-Identifier: MIT
import pandas as pd

co2 = pd.read_csv("/workspace/co2.csv", index_col="year")
print(f"{len(co2)} years, {co2.index.min()} to {co2.index.max()}")
co2.tail(3)
