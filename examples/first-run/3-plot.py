# SPDX-License-Identifier: MIT
import matplotlib.pyplot as plt

figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
axes.plot(co2.index, co2["ppm"], color="tab:red")
axes.set(title="Carbon dioxide at Mauna Loa", xlabel="year", ylabel="parts per million")
axes.grid(alpha=0.3)
plt.show()
