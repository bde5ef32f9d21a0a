import express from 'express'
import express4 from 'express4'
import { testFramework } from './conformance.js'
import { expressDriver } from './express-driver.js'

testFramework(expressDriver('Express 5', express))
testFramework(expressDriver('Express 4', express4))
