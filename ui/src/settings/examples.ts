// SPDX-License-Identifier: MIT
/** What a first message may be. Code goes as a fenced block, whose word says what runs it. */

const python = `\`\`\`python
import numpy as np
import matplotlib.pyplot as plt

x = np.linspace(0, 10, 400)
plt.plot(x, np.exp(-x / 4) * np.cos(3 * x))
plt.title("A damped oscillation")
plt.grid(alpha=0.3)
plt.show()
\`\`\``;

const node = `\`\`\`javascript
const os = require("node:os");
const primes = [];
for (let n = 2; primes.length < 10; n++)
  if (primes.every((p) => n % p)) primes.push(n);
console.log(\`Node \${process.version} on \${os.arch()}\`);
primes;
\`\`\``;

const r = `\`\`\`r
fit <- lm(mpg ~ wt, data = mtcars)
plot(mtcars$wt, mtcars$mpg, xlab = "Weight", ylab = "Miles per gallon", pch = 19)
abline(fit, lwd = 2)
coef(summary(fit))
\`\`\``;

/** For direct mode: code of each runtime. */
export const codeExamples = { python, node, r } as const;

/** For a model: names of texts that say what is wanted. */
export const wordExamples = ["plot", "simulate", "explore"] as const;
