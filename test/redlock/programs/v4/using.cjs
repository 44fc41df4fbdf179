// `using` as Bluebird 3.7 does it with the disposer of another copy: it is recognised by its methods,
// and its promise is converted twice. The second time a rejection is handled by nobody.
exports.using = async (disposer, work) => {
  if (typeof disposer.resource !== 'function' || typeof disposer.tryDispose !== 'function')
    throw new Error('This is no disposer')
  const resource = disposer.promise()
  resource._setDisposable(disposer)
  try {
    return await work(await converted(resource))
  } finally {
    const again = converted(resource)
    void again.then(() => {})
    if (resource._isDisposable()) await resource._getDisposer().tryDispose()
  }
}

function converted(thenable) {
  return new Promise((resolve, reject) => thenable.then(resolve, reject))
}
